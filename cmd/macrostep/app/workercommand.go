package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/cmd/macrostep/internal/cluster"
	"github.com/macrostep/macrostep/master/study"
)

const workerHelp = `Joins a study on another machine and makes runs for it until it ends. macrostep
study --serve writes join.json into its folder: copy it to this machine, and keep it
secret. More: macrostep help studies

Examples:
   macrostep worker --credentials join.json
   macrostep worker --join tls://head:4222 --credentials join.json --engines 16
   macrostep worker --join nats://cluster:4222 --credentials me.creds --study 3f9a…`

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
	if c.Int(flagEngines) < 0 {
		in.fail(flagEngines, fmt.Errorf("%d is less than 0", c.Int(flagEngines)))
	}
	if err := in.err(); err != nil {
		return err
	}
	link, err := cluster.Connect(c.String("join"), cluster.Credentials{File: c.String(flagCredentials), CA: c.String(flagCA)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	identity, err := p.chooseStudy(c.Context, link, c.String("study"))
	if err != nil || identity == "" {
		return err
	}
	cache, err := studyCache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(cache, "study-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := cluster.Download(c.Context, link, identity, filepath.Join(cache, "files"), folder); err != nil {
		return fmt.Errorf("the files of the study: %w", err)
	}
	f, err := study.OpenFolder(folder, study.ReadOnly)
	if err != nil {
		return err
	}
	con := newConsole(p.stderr)
	con.print("joined study " + identity)
	w := &cluster.Worker{Link: link, Identity: identity, Folder: folder, Plan: f.Plan, Engines: c.Int(flagEngines), Upload: f.Plan.Keep != study.KeepNone,
		New: p.studyEngines(f, con.print), Log: con.print}
	if err := w.Run(c.Context); err != nil {
		return &runError{err}
	}
	if c.Context.Err() != nil {
		return &runError{errors.New("interrupted before the study was over; other workers make its runs")}
	}
	con.print("the study is over")
	return nil
}

// chooseStudy returns the identity of the study on a server that the user means: the one with this identity, or
// the only one, for which it waits. "" = interrupted.
func (p *program) chooseStudy(ctx context.Context, link *cluster.Link, identity string) (string, error) {
	for waiting := false; ; waiting = true {
		all, err := link.Studies(ctx)
		switch {
		case ctx.Err() != nil:
			return "", nil
		case err != nil:
			return "", err
		case identity != "" && !slices.Contains(all, identity):
			return "", &usageError{"worker", fmt.Errorf("the server has no study %s; it has %s", identity, cmp.Or(strings.Join(all, ", "), "none"))}
		case identity != "":
			return identity, nil
		case len(all) == 1:
			return all[0], nil
		case len(all) > 1:
			return "", &usageError{"worker", fmt.Errorf("the server has several studies; choose one with --study: %s", strings.Join(all, ", "))}
		}
		if !waiting {
			fmt.Fprintln(p.stderr, "waiting for a study")
		}
		select {
		case <-ctx.Done():
			return "", nil
		case <-time.After(time.Second):
		}
	}
}
