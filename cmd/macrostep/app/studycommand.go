package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/cmd/macrostep/internal/cluster"
	"github.com/macrostep/macrostep/fmi/secret"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/master/study/page"
	"github.com/macrostep/macrostep/master/workdir"
)

const studyHelp = `Runs one system many times with other parameters, start values or settings, and
writes a row of numbers per run. FILE.yaml describes the study; flags do for a small
one. A run that crashes, hangs or becomes unstable gets a row with the reason.
--resume continues a study after Ctrl-C or a crash of the machine. More: macrostep
help studies

Examples:
   macrostep study study.yaml --output tyres --engines 8
   macrostep study car.ssp --vary wheel.d_c=500,1000 --collect 'rms(chassis.v_c)'
   macrostep study --resume tyres`

// Names of the flags about servers.
const (
	flagNATS        = "nats"
	flagServe       = "serve"
	flagCredentials = "credentials"
	flagCA          = "ca"
	flagEngines     = "engines"
)

func (p *program) studyCommand() *cli.Command {
	return &cli.Command{
		Name: "study", Usage: "run a system many times with other values", ArgsUsage: "FILE.yaml",
		UsageText: "macrostep study FILE.yaml [FLAGS]\n   macrostep study SYSTEM --vary … --collect … [FLAGS]\n   macrostep study --resume FOLDER", Description: studyHelp,
		Flags: slices.Concat(inCategory("Study without a file",
			listFlag("vary", "vary a variable or run.SETTING: `NAME=VALUES`; VALUES is a list, or linear(FROM, TO, N), normal(MEAN, SIGMA), …"),
			listFlag("collect", "compute a number of each run: `[NAME=]QUANTITY`, such as maximum(component.variable)"),
			stringFlag("design", "choose points by `DESIGN`: "+strings.Join(study.Designs, ", ")),
			stringFlag("samples", "number `N` of samples, for designs that sample"),
			stringFlag("seed", "seed `N` of random numbers; the same seed gives the same runs"),
			listFlag("run", "pass a flag of macrostep run to every run: `SETTING=VALUE`"),
			stringFlag("keep", "keep tables of results of `RUNS`: none, failed, all"),
			stringFlag("time-limit", "end a run after `TIME`, such as 30s"),
		), inCategory("Engines",
			&cli.IntFlag{Name: flagEngines, Usage: "make `N` runs at a time; 0: as many as there are cores"},
			stringFlag(flagServe, "let workers join at `[HOST]:PORT`, with TLS and the credentials in join.json of the folder"),
			stringFlag(flagNATS, "let workers join through the NATS server or cluster at `URL`"),
			listFlag("max-instances", "make at most N runs at a time, on all machines together: `COMPONENT=N`, for FMUs with N licences"),
			stringFlag(flagCredentials, "credentials `FILE` for a server: join.json of a study, .creds, or the seed of an NKey"),
			stringFlag(flagCA, "certificate authority `FILE.pem` of the server"),
		), inCategory("Results",
			outputFlag("`FOLDER` for the study (default: named after FILE or SYSTEM)"),
			stringFlag("resume", "continue the study in `FOLDER`"),
			&cli.IntFlag{Name: flagCheck, Usage: "measure the coupling error of `N` runs: the best, the worst, and others at random"},
			boolFlag("strict", "exit with 1 if a run is not ok or misses an expectation, a convergence does not settle, or a coupling error is a warning"),
			boolFlag("quiet", "print errors only"),
			forceFlag(),
		)),
		Action: p.runStudy,
	}
}

// studyRequest is a study as the user asked for it.
type studyRequest struct {
	folder               string
	resume               bool
	text                 []byte // plan, of a new one
	path                 string // of the plan; of one from flags, where it would be
	flags                bool   // the plan is from flags
	engines              int
	serve, nats          string
	credentials          cluster.Credentials
	strict, quiet, force bool
	maxInstances         map[string]int
	checks               int // 0 = as the plan says
}

func (p *program) runStudy(c *cli.Context) (err error) {
	r, err := parseStudy(c)
	if err != nil {
		return err
	}
	if r.serve != "" {
		if err := cluster.CheckAddress(r.serve); err != nil {
			return &usageError{"study", fmt.Errorf("--%s: %w", flagServe, err)}
		}
	}
	con := newConsole(p.stderr)
	var link *cluster.Link
	if r.nats != "" { // before there is a folder
		if link, err = cluster.Connect(r.nats, r.credentials, con.print); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, link.Close()) }()
	}
	f, err := p.studyFolder(c.Context, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return p.carryOut(c.Context, r, f, con, link)
}

func parseStudy(c *cli.Context) (*studyRequest, error) {
	in := newInput(c)
	r := &studyRequest{
		folder: c.String(flagOutput), engines: c.Int(flagEngines), serve: c.String(flagServe), nats: c.String(flagNATS),
		credentials: cluster.Credentials{File: c.String(flagCredentials), CA: c.String(flagCA)},
		strict:      c.Bool("strict"), quiet: c.Bool("quiet"), force: c.Bool(flagForce), checks: c.Int(flagCheck), maxInstances: map[string]int{},
	}
	if c.IsSet(flagCheck) && r.checks < 1 {
		in.fail(flagCheck, fmt.Errorf("%d is less than 1", r.checks))
	}
	if r.engines < 0 {
		in.fail(flagEngines, fmt.Errorf("%d is less than 0", r.engines))
	}
	if r.serve != "" && r.nats != "" {
		in.add(fmt.Errorf("--%s starts a server and --%s uses one; give one of them", flagServe, flagNATS))
	}
	for _, text := range c.StringSlice("max-instances") {
		name, value, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			in.fail("max-instances", fmt.Errorf("%q is not COMPONENT=N with N from 1 up", text))
		}
		r.maxInstances[name] = n
	}
	if resume := c.String("resume"); resume != "" {
		for _, flag := range slices.Concat(planFlags, []string{flagOutput, flagForce}) {
			if c.IsSet(flag) {
				in.add(fmt.Errorf("--%s does not go with --resume: the folder has the plan", flag))
			}
		}
		r.folder, r.resume = resume, true
		in.add(arguments(c, 0, 0, ""))
		return r, in.err()
	}
	if err := arguments(c, 1, 1, "FILE.yaml, or SYSTEM with --vary and --collect,"); err != nil {
		return nil, err
	}
	r.path = c.Args().First()
	isFile := slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(r.path)))
	name := strings.TrimSuffix(filepath.Base(r.path), filepath.Ext(r.path))
	if isFile {
		for _, flag := range planFlags {
			if c.IsSet(flag) {
				in.add(fmt.Errorf("--%s is for a study without a file; write it into %s", flag, r.path))
			}
		}
		var err error
		r.text, err = readFile(r.path)
		in.add(err)
	} else {
		r.flags, r.text = true, in.planText()
		r.path = name + "-study.yaml" // here: files that flags name are relative to this folder
		name += "-study"
	}
	if r.folder == "" {
		r.folder = name
	}
	return r, in.err()
}

// planFlags describe a study without a file.
var planFlags = []string{"vary", "collect", "design", "samples", "seed", "run", "keep", "time-limit"}

// planText returns the flags as a plan, in JSON, which is YAML.
func (in *input) planText() []byte {
	var b strings.Builder
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, yamlText(value))
		}
	}
	system, err := filepath.Abs(in.Args().First())
	in.add(err)
	field("system", system)
	section := func(key string, each func(text string) string) {
		if list := in.StringSlice(key); len(list) > 0 {
			fmt.Fprintf(&b, "%s:\n", key)
			for _, text := range list {
				b.WriteString(each(text))
			}
		}
	}
	assignment := func(flag string) func(string) string {
		return func(text string) string {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				in.fail(flag, fmt.Errorf("%q has no =; write NAME=VALUE", text))
			}
			return fmt.Sprintf("  %s: %s\n", yamlText(name), yamlText(value))
		}
	}
	section("vary", assignment("vary"))
	section("collect", func(text string) string {
		if name, value, ok := strings.Cut(text, "="); ok {
			return fmt.Sprintf("  %s: %s\n", yamlText(name), yamlText(value))
		}
		return fmt.Sprintf("  %s: %s\n", yamlText(text), yamlText(text))
	})
	settings := map[string][]string{}
	var order []string
	for _, text := range in.StringSlice("run") {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			value = "true"
		}
		if settings[name] == nil {
			order = append(order, name)
		}
		settings[name] = append(settings[name], yamlText(value))
	}
	if order != nil {
		b.WriteString("run:\n")
	}
	for _, name := range order {
		fmt.Fprintf(&b, "  %s: [%s]\n", yamlText(name), strings.Join(settings[name], ", "))
	}
	for _, key := range []string{"design", "samples", "seed", "keep", "time-limit"} {
		field(key, in.String(key))
	}
	return []byte(b.String())
}

// withoutFile returns the errors of a plan from flags without file and lines, which the user has not written.
func withoutFile(err error, path string) error {
	place := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(path) + `(:\d+)?: (line \d+: )?`)
	return errors.New(place.ReplaceAllString(err.Error(), ""))
}

func yamlText(text string) string {
	data, _ := json.Marshal(text) // a string can be written
	return string(data)
}

// studyFolder opens the folder of a study, or makes one.
func (p *program) studyFolder(ctx context.Context, r *studyRequest) (*study.Folder, error) {
	if r.resume {
		return study.OpenFolder(r.folder, study.ReadWrite)
	}
	plan, err := study.Parse(r.path, r.text, nil)
	if err == nil {
		for _, s := range plan.Run {
			p.tellOld(s.Name)
		}
	}
	if err != nil {
		if r.flags {
			err = withoutFile(err, r.path)
		}
		return nil, &usageError{"study", err}
	}
	if err := r.apply(plan); err != nil {
		return nil, err
	}
	found, err := study.Inspect(ctx, plan, p.studyOptions())
	if err != nil {
		return nil, err
	}
	if !r.quiet {
		p.warnOfFactors(plan, found.Warnings)
	}
	if r.force {
		if err := study.Remove(r.folder); err != nil {
			return nil, err
		}
	}
	return study.Create(r.folder, plan, r.text, found)
}

// warnOfFactors prints the warnings that name a factor, and how many others there are.
func (p *program) warnOfFactors(plan *study.Plan, warnings []string) {
	names, others := plan.FactorNames(), 0
	for _, w := range warnings {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(w, name) }) {
			fmt.Fprintln(p.stderr, "warning:", strings.TrimPrefix(w, "warning: "))
		} else {
			others++
		}
	}
	if others > 0 {
		fmt.Fprintf(p.stderr, "%s about the documents: macrostep info %s lists them\n", plural(others, "warning"), plan.System)
	}
}

// carryOut makes the runs of a study and prints what they give.
func (p *program) carryOut(ctx context.Context, r *studyRequest, f *study.Folder, con *console, link *cluster.Link) (err error) {
	debug.SetGCPercent(collectionPercent)
	if err := r.apply(f.Plan); err != nil {
		return err
	}
	if err := (workdir.Folder{Path: ".", Own: []string{f.Path}}).Copyable(); err != nil && !r.quiet {
		fmt.Fprintf(p.stderr, "warning: all runs share the working folder, because no copies can be made (%v): if FMUs write files there, those of one "+
			"run overwrite those of others and your own; start the study in a folder of its own\n", err)
	}
	queue := cluster.NewQueue(f.Plan, con.print)
	defer queue.Close()
	coordinator, err := openStudy(r, f, queue, link)
	if err != nil {
		return r.later(err, f)
	}
	if r.serve != "" {
		_, port, _ := net.SplitHostPort(coordinator.Address())
		host, _, _ := net.SplitHostPort(r.serve)
		r.serve = net.JoinHostPort(host, port) // if it was any, to continue at the same
	}
	if coordinator != nil && !r.quiet {
		con.print("other machines join with: " + r.joining(f, coordinator))
	}
	shown := newStudyPage(f)
	defer shown.stop()
	meter := newStudyMeter(con, r.quiet, len(f.Rows()))
	s := &study.Study{Plan: f.Plan, Folder: f, Events: func(e study.Event) { shown.event(e); meter.event(e) }}
	findings, err := conduct(ctx, s, queue, &cluster.Worker{Tasks: queue.Local(), Engines: r.engines, New: p.studyEngines(f, con.print)})
	if coordinator != nil {
		err = errors.Join(err, coordinator.Close(err == nil))
	}
	con.clear()
	if err == nil {
		err = f.Sort()
	}
	if err == nil { // nobody joins any more
		for _, name := range []string{study.TicketFile, study.KeysFile, study.Incoming} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.Path, name)))
		}
	}
	state := page.Complete
	if err != nil {
		state = page.Interrupted
	}
	report, wrote := study.Conclude(f, findings)
	if err = errors.Join(err, wrote, shown.end(state, findings.Rows, report)); !r.quiet {
		printStudy(p.stdout, f, report)
		warnOfFit(p.stderr, report.Fit)
		warnOfErrors(p.stderr, report.Checks)
	}
	if err != nil {
		return r.later(cause(err), f)
	}
	return r.verdict(f, report, len(findings.Rows))
}

// verdict returns an error if no run is ok, or with --strict one is not or does not meet its expectations.
func (r *studyRequest) verdict(f *study.Folder, report *study.Report, runs int) error {
	ok, met := report.Statuses[study.OK], report.Verdicts[master.ExpectationsMet]
	switch {
	case ok == 0 || r.strict && ok < runs:
		return &runError{fmt.Errorf("%d of %d runs are not ok; the reasons are in %s", runs-ok, runs, filepath.Join(f.Path, study.ResultsFile))}
	case r.strict && slices.ContainsFunc(report.Settled, func(q study.Settled) bool { return !q.Settled }):
		return &runError{errors.New("not all quantities have settled")}
	case r.strict && slices.ContainsFunc(report.Checks, func(c study.Checked) bool { return c.Error.Warning() != "" }):
		return &runError{errors.New("not all coupling errors are known and below the limit")}
	case r.strict && report.Verdicts != nil && met < runs:
		return &runError{fmt.Errorf("%d of %d runs do not meet the expectations of the scenario", runs-met, runs)}
	}
	return nil
}

// later adds the command to continue a study to the error that has ended it.
func (r *studyRequest) later(err error, f *study.Folder) error {
	text := "macrostep study --resume " + f.Path
	if r.serve != "" {
		text += " --" + flagServe + " " + r.serve
	}
	if r.nats != "" {
		text += " --" + flagNATS + " " + secret.Plain(r.nats)
		if r.credentials.File != "" {
			text += " --" + flagCredentials + " " + r.credentials.File
		}
		if r.credentials.CA != "" {
			text += " --" + flagCA + " " + r.credentials.CA
		}
	}
	if r.checks > 0 {
		text += fmt.Sprintf(" --%s %d", flagCheck, r.checks)
	}
	return &runError{fmt.Errorf("%w\nto continue: %s", err, text)}
}

// conduct carries out a study with a worker in this process.
func conduct(ctx context.Context, s *study.Study, q *cluster.Queue, w *cluster.Worker) (*study.Findings, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worked := make(chan error, 1)
	go func() {
		err := w.Run(ctx)
		if err != nil {
			cancel(err)
		}
		worked <- err
	}()
	findings, err := s.Run(ctx, q)
	cancel(nil)
	if failed := <-worked; failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	return findings, err
}

// apply adds the flags that any study takes to a plan.
func (r *studyRequest) apply(p *study.Plan) error {
	if p.MaxInstances == nil {
		p.MaxInstances = map[string]int{}
	}
	maps.Copy(p.MaxInstances, r.maxInstances)
	if r.checks > 0 {
		p.Checks = r.checks
	}
	if err := p.Check(); err != nil {
		return &usageError{"study", err}
	}
	return nil
}

// cause names an interrupt as such.
func cause(err error) error {
	if errors.Is(err, master.ErrInterrupted) {
		return errors.New("interrupted; the rows so far are kept")
	}
	return err
}

// openStudy lets workers on other machines have tasks of a queue, if the user wants them to; nil = not.
func openStudy(r *studyRequest, f *study.Folder, q *cluster.Queue, link *cluster.Link) (*cluster.Coordinator, error) {
	switch {
	case r.serve != "":
		return cluster.Serve(q, f, r.serve)
	case r.nats != "":
		return cluster.Offer(q, f, link)
	}
	return nil, nil
}

// joining is the command for workers.
func (r *studyRequest) joining(f *study.Folder, c *cluster.Coordinator) string {
	if r.nats != "" {
		return fmt.Sprintf("macrostep worker --join %s --study %s", secret.Plain(r.nats), c.Study())
	}
	return "macrostep worker --credentials " + filepath.Join(f.Path, study.TicketFile)
}
