package app

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/master/validate"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// completeCommand is the command that completion scripts call with the words of the command line up to the
// cursor. It prints a choice, a tab and an explanation per line; no line means that the word is a file.
const completeCommand = "__complete"

//go:embed completion
var completionFiles embed.FS

// completionScripts are the scripts of the shells.
var completionScripts = map[string]string{"bash": "bash.sh", "zsh": "zsh.sh", "fish": "fish.fish"}

const completionHelp = `Prints a script for tab completion of commands, flags, algorithms and their
parameters, and variables of the system or table in the line.

Examples:
   source <(macrostep completion bash)      now; in ~/.bashrc for always
   source <(macrostep completion zsh)       now; in ~/.zshrc for always
   macrostep completion fish | source       now
   macrostep completion fish > ~/.config/fish/completions/macrostep.fish`

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: "SHELL",
		UsageText: "macrostep completion bash|zsh|fish", Description: completionHelp,
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SHELL (bash, zsh or fish)"); err != nil {
				return err
			}
			shell := c.Args().First()
			script, err := completionFiles.ReadFile("completion/" + completionScripts[shell])
			if completionScripts[shell] == "" || err != nil {
				return &usageError{"completion", fmt.Errorf("%q is not a known shell%s", shell, diag.DidYouMeanOr(shell, slices.Sorted(maps.Keys(completionScripts)), "; choose one of "))}
			}
			_, err = p.data().Write(script)
			return err
		},
	}
}

type choice struct{ word, doc string }

// complete prints the choices for the last word.
func (p *program) complete(words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	for _, c := range p.choices(words) {
		fmt.Fprintf(p.data(), "%s\t%s\n", c.word, c.doc)
	}
}

// choices returns the choices for the last word.
func (p *program) choices(words []string) []choice {
	app := p.app()
	if len(words) > 2 && app.Command(words[0]+" "+words[1]) != nil {
		words = append([]string{words[0] + " " + words[1]}, words[2:]...)
	}
	if len(words) > 1 && app.Command(words[0]) == nil && p.isSystem(words[0]) {
		words = append([]string{"run"}, words...)
	}
	last := words[len(words)-1]
	if commands := p.commandChoices(app, words[:len(words)-1]); commands != nil {
		return startingWith(commands, last)
	}
	cmd := app.Command(words[0])
	if cmd == nil {
		return nil
	}
	before := words[1 : len(words)-1]
	if list, ok := p.valueChoices(cmd, before, last); ok {
		return list
	}
	if strings.HasPrefix(last, "-") {
		return startingWith(flagChoices(cmd), last)
	}
	return p.argumentChoices(cmd, before, last)
}

// commandChoices returns the commands that may follow; nil = the command is complete.
func (p *program) commandChoices(app *cli.App, before []string) (out []choice) {
	switch words := strings.Join(before, " "); words {
	case "", "help":
		for _, c := range app.VisibleCommands() {
			out = append(out, choice{c.Name, c.Usage})
		}
		if words == "" {
			out = append(out, choice{"help", "explain a command"})
		} else {
			out = append(out, topicChoices(app)...)
		}
	case sspGroup, "help " + sspGroup:
		for _, c := range p.sspCommands() {
			out = append(out, choice{strings.TrimPrefix(c.Name, sspGroup+" "), c.Usage})
		}
	}
	return out
}

// valueChoices returns the choices if the last word is the value of a flag.
func (p *program) valueChoices(cmd *cli.Command, before []string, last string) (list []choice, isValue bool) {
	values := func(flag, value string) []choice {
		if names := p.names(cmd, flag, before, value); names != nil {
			return startingWith(names, value)
		}
		return startingWith(p.values(flag, before), value)
	}
	// bash splits --flag=value and key=value at the equals sign.
	split := false
	if n := len(before); last == "=" {
		last, split = "", true
	} else if n > 0 && before[n-1] == "=" {
		before, split = before[:n-1], true
	}
	if n := len(before); n > 0 {
		if name, ok := strings.CutPrefix(before[n-1], "--"); ok && !strings.Contains(name, "=") && flagTakesValue(cmd, name) {
			return values(name, last), true
		}
	}
	if split {
		return nil, true // the value of a parameter
	}
	flag, value, ok := strings.Cut(last, "=")
	if !ok || !strings.HasPrefix(flag, "--") {
		return nil, false
	}
	for _, c := range values(flag[2:], value) {
		list = append(list, choice{flag + "=" + c.word, c.doc})
	}
	return list, true
}

// flagChoices returns the flags of a command.
func flagChoices(cmd *cli.Command) (out []choice) {
	for _, f := range cmd.VisibleFlags() {
		doc := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			doc = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		out = append(out, choice{"--" + f.Names()[0], doc})
	}
	out = append(out, choice{"--" + flagHelp, "explain the command"})
	if commonFlags[cmd.Name] != nil {
		out = append(out, choice{"--" + flagHelpAll, "explain all its flags"})
	}
	return out
}

// argumentChoices returns the choices for an argument; nil = it is a file.
func (p *program) argumentChoices(cmd *cli.Command, before []string, last string) []choice {
	switch cmd.Name {
	case "algorithms":
		return startingWith(p.presetChoices(), last)
	case "completion":
		return startingWith(plain([]string{"bash", "zsh", "fish"}), last)
	case "ssp set":
		if files := positionals(cmd, before); len(files) > 0 {
			return startingWith(p.variables(files[0], "set", last), last)
		}
	case "demo":
		list := []choice{{demoChain, "a chain of masses of any length"}}
		for _, name := range fmus.Systems() {
			list = append(list, choice{name, fmus.Summary(name)})
		}
		return startingWith(list, last)
	}
	return nil
}

// positionals returns the words that are neither flags nor values of flags.
func positionals(cmd *cli.Command, words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		name, isFlag := strings.CutPrefix(words[i], "-")
		switch {
		case !isFlag:
			out = append(out, words[i])
		case strings.Contains(name, "="):
		case flagTakesValue(cmd, strings.TrimPrefix(name, "-")):
			i++
			if i < len(words) && words[i] == "=" { // as bash has it
				i++
			}
		}
	}
	return out
}

// names returns the names of variables for a flag, from the files that the words before name; nil = the flag
// takes none, or there is no file. prefix is the beginning of the value.
func (p *program) names(cmd *cli.Command, flag string, before []string, prefix string) []choice {
	if cmd.Name == "validate" && flag == flagExplain {
		return ruleChoices()
	}
	files := positionals(cmd, before)
	if len(files) == 0 {
		return nil
	}
	switch cmd.Name + " " + flag {
	case "plot select", "report select", "compare select":
		return columnChoices(files, "", prefix)
	case "compare rtol", "compare atol", "compare nrmse", "compare map":
		return columnChoices(files, "=", prefix)
	case "study vary":
		return append(p.variables(files[0], "set", prefix), settingChoices()...)
	case "run set", "run record", "info set", "info explain", "analyze set":
		return p.variables(files[0], flag, prefix)
	}
	return nil
}

// columnChoices returns the columns of tables, each with an ending.
func columnChoices(files []string, ending, prefix string) []choice {
	var out []choice
	seen := map[string]bool{}
	for _, path := range files {
		columns, err := results.Header(path)
		if err != nil {
			continue
		}
		for _, c := range columns {
			if !seen[c.Bare] {
				seen[c.Bare] = true
				out = append(out, choice{c.Bare + ending, c.Unit})
			}
		}
	}
	return byPart(out, prefix)
}

// variables returns the variables of a system; for --set those that can be set, with an equals sign.
func (p *program) variables(path, flag, prefix string) []choice {
	list, err := variablesOf(path, p.dialects)
	if err != nil {
		return nil
	}
	var out []choice
	for _, v := range list {
		switch {
		case flag != "set":
			out = append(out, choice{v.Name, v.Description})
		case v.Settable:
			out = append(out, choice{v.Name + "=", v.Description})
		}
	}
	return byPart(out, prefix)
}

// byPart cuts names that begin with a prefix after its next dot, so that names are completed part by part.
func byPart(all []choice, prefix string) []choice {
	var out []choice
	for _, c := range all {
		if rest, ok := strings.CutPrefix(c.word, prefix); ok {
			if part, _, more := strings.Cut(rest, "."); more {
				c = choice{prefix + part + ".", ""}
			}
			if n := len(out); n == 0 || out[n-1] != c {
				out = append(out, c)
			}
		}
	}
	return out
}

func flagTakesValue(cmd *cli.Command, name string) bool {
	for _, f := range cmd.Flags {
		if f.Names()[0] == name {
			return takesValue(f)
		}
	}
	return false
}

// values returns the choices for the value of a flag; nil = it is a file.
func (p *program) values(flag string, before []string) []choice {
	if e := simulate.Find(flag); e != nil && e.Choices != nil {
		return plain(e.Choices())
	}
	switch flag {
	case flagAlgorithm:
		return p.presetChoices()
	case flagDisable:
		return ruleChoices()
	case flagFor:
		return plain(dialect.Tools())
	case flagParam:
		return p.params(before)
	case "design":
		return plain(study.Designs)
	case "keep":
		return plain([]string{string(study.KeepNone), string(study.KeepFailed), string(study.KeepAll)})
	case flagDebug:
		return plain(debugNames(runDebugKeys))
	case "norm":
		return []choice{{string(results.Range), "greatest less least value"}, {string(results.RMS), "root of the mean square"}}
	}
	return nil
}

// plain returns choices without explanation.
func plain(words []string) []choice {
	var out []choice
	for _, w := range words {
		out = append(out, choice{w, ""})
	}
	return out
}

// settingChoices are the settings of a run that vary in a study.
func settingChoices() []choice {
	var out []choice
	for _, name := range study.VariedSettings() {
		out = append(out, choice{study.SettingPrefix + name + "=", "setting of the run"})
	}
	return out
}

func ruleChoices() []choice {
	var out []choice
	for _, r := range validate.Rules() {
		out = append(out, choice{r.ID, firstSentence(r.Doc)})
	}
	return out
}

func (p *program) presetChoices() []choice {
	var out []choice
	for _, a := range p.presets.All() {
		out = append(out, choice{a.Name, a.Doc})
	}
	return out
}

// params returns the parameters of the algorithm that --algorithm names in the words before.
func (p *program) params(before []string) []choice {
	preset := algorithms.DefaultPreset
	for i, w := range before {
		if v, ok := strings.CutPrefix(w, "--"+flagAlgorithm+"="); ok {
			preset = v
		} else if w == "--"+flagAlgorithm {
			rest := before[i+1:]
			if len(rest) > 1 && rest[0] == "=" {
				rest = rest[1:]
			}
			if len(rest) > 0 {
				preset = rest[0]
			}
		}
	}
	found, err := p.presets.Find(preset)
	if err != nil {
		return nil
	}
	var out []choice
	for _, q := range found.Params {
		out = append(out, choice{q.Name + "=", q.Range + ": " + q.Doc})
	}
	return out
}

func startingWith(all []choice, prefix string) []choice {
	var out []choice
	for _, c := range all {
		if strings.HasPrefix(c.word, prefix) {
			out = append(out, c)
		}
	}
	return out
}
