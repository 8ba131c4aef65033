package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master/simulate"
)

// defaultListen is where a host listens unless it is told.
const defaultListen = "127.0.0.1:7447"

const hostHelp = `Offers the FMUs in folders to runs on other machines or in other operating systems,
until Ctrl-C: macrostep run SYSTEM --on COMPONENT=HOST. The host prints the name of
its ticket: copy this file to the other machine, keep it secret, and give it to --on
as HOST. FMUs are found by their content, whatever their files are called. A folder
called list is ./list. More: macrostep help hosts

Examples:
   macrostep host models --listen :7447 --max-instances 4
   macrostep host --accept --listen 192.168.1.7:7447`

func (p *program) hostCommand() *cli.Command {
	return &cli.Command{
		Name: "host", Usage: "run FMUs for runs on other machines, or list hosts", ArgsUsage: "[DIR…]",
		UsageText: "macrostep host [DIR…] [FLAGS]\nmacrostep host list [HOST…] [FLAGS]", Description: hostHelp,
		Flags: []cli.Flag{
			stringFlag("listen", "listen at `[HOST]:PORT`; port 0: any free one (default: "+defaultListen+")"),
			boolFlag("accept", "also run FMUs that runs send: they can execute any code here"),
			boolFlag("compile", "compile the C sources of FMUs that have no library for this platform"),
			&cli.IntFlag{Name: "max-instances", Usage: "run at most `N` instances at a time; 0: any number"},
			stringFlag(flagStepTimeout, "end an FMU whose call takes longer than `T` seconds"),
			stringFlag(flagMemoryLimit, "let the FMUs in a process allocate at most `N` MiB (Linux)"),
			stringFlag("name", "call the host `NAME` in messages (default: that of the machine)"),
			boolFlag("quiet", "print errors only"),
		},
		Action: p.runHost,
	}
}

func (p *program) runHost(c *cli.Context) (err error) {
	in := newInput(c)
	o := host.ServerOptions{Name: c.String("name"), Program: simulate.Version(), Folders: c.Args().Slice(), Accept: c.Bool("accept"),
		Compile: c.Bool("compile"), MaxInstances: c.Int("max-instances")}
	var limits simulate.Request
	in.settings(&limits)
	o.Worker.Timeout, o.Worker.Memory = limits.StepTimeout, limits.MemoryLimit
	if len(o.Folders) == 0 && !o.Accept {
		in.add(errors.New("give the folders with the FMUs to offer, or --accept to run any FMU that is sent"))
	}
	if o.MaxInstances < 0 {
		in.fail("max-instances", fmt.Errorf("%d is less than 0", o.MaxInstances))
	}
	if err := in.err(); err != nil {
		return err
	}
	dir, err := host.TicketDir()
	if err != nil {
		return err
	}
	if _, _, err := process.Image(); err != nil { // of its workers
		return err
	}
	say := func(text string) {
		if !c.Bool("quiet") {
			fmt.Fprintln(p.stdout, text)
		}
	}
	o.Log = func(text string) { say(time.Now().Format("15:04:05 ") + text) }
	s, err := host.NewServer(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, f := range s.Offers() {
		say(fmt.Sprintf("offers %s (%s)", f.Name, cmp.Or(f.Model, f.Hash)))
	}
	l, certificate, token, ticket, err := host.Listen(cmp.Or(c.String("listen"), defaultListen), dir)
	if err != nil {
		return err
	}
	if how, ok := c.Context.Value(answeringKey{}).(*answering); ok {
		how.atOnce.Store(true) // an interrupt is its usual end
	}
	say("ticket: " + ticket)
	say(fmt.Sprintf("ready: macrostep run SYSTEM --on COMPONENT=%s on this machine, --on COMPONENT=%s with the ticket on another", l.Addr(), filepath.Base(ticket)))
	return s.Serve(c.Context, l, certificate, token)
}

const hostListHelp = `Lists hosts (macrostep host), the time of a round trip to each, and the FMUs that
it offers. HOST is HOST:PORT, or the ticket of a host. Without HOST: all whose
tickets are on this machine.

Examples:
   macrostep host list
   macrostep host list lab7.json`

func (p *program) hostListCommand() *cli.Command {
	return &cli.Command{
		Name: "host list", Usage: "list hosts and the FMUs that they offer", ArgsUsage: "[HOST…]",
		UsageText: "macrostep host list [HOST…] [FLAGS]", Description: hostListHelp, Hidden: true, // help host names it
		Flags: []cli.Flag{jsonFlag()}, Action: p.listHosts,
	}
}

// hostLine is what is known of a host.
type hostLine struct {
	Address string `json:"address"`
	host.Status
	Offers  []host.Offer `json:"offers"`
	Trip    float64      `json:"round_trip_s"`
	Problem string       `json:"problem,omitempty"`
}

func (p *program) listHosts(c *cli.Context) error {
	in, addresses := newInput(c), c.Args().Slice()
	for _, a := range addresses {
		in.add(host.CheckAddress(a))
	}
	if err := in.err(); err != nil {
		return err
	}
	if len(addresses) == 0 {
		dir, err := host.TicketDir()
		if err != nil {
			return err
		}
		tickets, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return err
		}
		addresses = slices.DeleteFunc(tickets, func(t string) bool { return filepath.Base(t) == host.SecretsFile })
	}
	var all []hostLine
	failed := 0
	for _, a := range addresses {
		line, err := lookAt(c.Context, a)
		if err != nil {
			failed++
			line = hostLine{Address: a, Problem: err.Error()}
		}
		all = append(all, line)
	}
	var err error
	if c.Bool("json") {
		err = writeJSON(p.data(), all)
	} else {
		printHosts(p.stdout, all)
	}
	if err == nil && failed > 0 && c.Args().Present() {
		err = &runError{fmt.Errorf("%s of %d did not answer", plural(failed, "host"), len(addresses))}
	}
	return err
}

// listTime is how long a host that is listed may take to answer.
const listTime = 2 * time.Second

// lookAt asks a host what it offers.
func lookAt(ctx context.Context, address string) (hostLine, error) {
	client, err := (&simulate.Request{HostTimeout: listTime}).Client(address)
	if err != nil {
		return hostLine{}, err
	}
	status, offers, trip, err := client.Status(ctx)
	return hostLine{Address: address, Status: status, Offers: offers, Trip: trip.Seconds()}, errors.Join(err, client.Close())
}

func printHosts(w io.Writer, all []hostLine) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no hosts; macrostep host starts one")
	}
	for _, h := range all {
		if h.Problem != "" {
			fmt.Fprintf(w, "%s: %s\n", h.Address, h.Problem)
			continue
		}
		most := ""
		if h.MaxInstances > 0 {
			most = fmt.Sprintf(" of at most %d", h.MaxInstances)
		}
		fmt.Fprintf(w, "%s: %s, %s, macrostep %s, round trip %.3g ms, %s%s\n", h.Address, diag.Line(h.Name), diag.Line(h.Platform), diag.Line(h.Program), h.Trip*1e3,
			plural(h.Instances, "instance"), most)
		rows := rowsOf(h.Offers, func(o host.Offer) []string {
			return []string{"  " + diag.Line(o.Name), diag.Line(o.Model), diag.Line(o.Hash[:min(len(o.Hash), 19)]) + "…"}
		})
		if h.Accepts {
			rows = append(rows, []string{"  any FMU that is sent", "", ""})
		}
		table(w, rows)
	}
}
