package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/cmd/macrostep/internal/cluster"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/master/study"
)

const workerHelp = `Joins a study on another machine and makes runs for it until it ends. macrostep
study --serve writes join.json into its folder: copy it to this machine, and keep it
secret. More: macrostep help studies

Examples:
   macrostep worker --credentials join.json
   macrostep worker --join tls://head:4222 --credentials join.json --engines 16
   macrostep worker --join nats://cluster --credentials worker1.creds --study 3f9a…`

func (p *program) workerCommand() *cli.Command {
	return &cli.Command{
		Name: "worker", Usage: "make runs for a study on another machine",
		UsageText: "macrostep worker [--join URL] --credentials FILE [FLAGS]", Description: workerHelp,
		Flags: []cli.Flag{
			stringFlag("join", "connect to the server at `URL` (default: that in join.json)"),
			stringFlag("study", "work on the study with `ID`, if the server has several"),
			&cli.IntFlag{Name: flagEngines, Usage: "make `N` runs at a time; 0: as many as there are cores"},
			stringFlag(flagCredentials, "credentials `FILE` for a server: join.json of a study, .creds, or the seed of an NKey"),
			stringFlag(flagCA, "certificate authority `FILE.pem` of the server"),
		},
		Action: p.runWorker,
	}
}

func (p *program) runWorker(c *cli.Context) (err error) {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	in := newInput(c)
	if !c.IsSet("join") && !c.IsSet(flagCredentials) {
		in.add(errors.New("give --credentials join.json, or --join URL"))
	}
	if n := c.Int(flagEngines); n < 0 || n > cluster.MostEngines {
		in.fail(flagEngines, fmt.Errorf("%d is not a number from 0 to %d", n, cluster.MostEngines))
	}
	if err := in.err(); err != nil {
		return err
	}
	con := newConsole(p.stderr)
	link, err := cluster.Connect(c.String("join"), cluster.Credentials{File: c.String(flagCredentials), CA: c.String(flagCA)}, con.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if err := p.work(c, link, con); err != nil && !errors.Is(err, cluster.ErrOver) {
		return &runError{err}
	}
	con.print("the study is over")
	return nil
}

// work makes runs for the study until it is over.
func (p *program) work(c *cli.Context, link *cluster.Link, con *console) (err error) {
	client, err := cluster.Join(c.Context, link, c.String("study"), con.print)
	if err != nil {
		return err
	}
	cache, err := studyCache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	_, _ = archive.Sweep(cache, studyPrefix) // of killed workers; the next one tries again
	dir, err := archive.NewTempDir(cache, studyPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	if err := client.Download(c.Context, filepath.Join(cache, "files"), dir.Path); err != nil {
		return fmt.Errorf("the files of the study: %w", err)
	}
	f, err := study.OpenFolder(dir.Path, study.ReadOnly)
	if err != nil {
		return err
	}
	con.print("joined study " + client.Study())
	w := &cluster.Worker{Tasks: client, Engines: c.Int(flagEngines), New: p.studyEngines(f, con.print)}
	if f.Plan.Keep != study.KeepNone {
		if w.Kept, err = f.Runs(); err != nil {
			return err
		}
	}
	err = w.Run(c.Context)
	if err == nil && c.Context.Err() != nil {
		err = errors.New("interrupted before the study was over; other workers make its runs")
	}
	return err
}

// studyPrefix is that of folders with the files of a study.
const studyPrefix = "study-"
