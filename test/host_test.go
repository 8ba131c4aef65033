package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/test/long"
)

// theHost is the host of all tests, which takes any FMU; its ticket is in the folder of the user.
var theHost struct {
	sync.Once
	address string
}

// endHost ends it.
var endHost = func() {}

// hostFlag returns the flag that runs all components on the host of the tests.
func hostFlag(t testing.TB) string {
	t.Helper()
	theHost.Do(func() {
		cmd := exec.Command(program, "host", "--accept", "--listen", "127.0.0.1:0")
		cmd.Dir = work
		var out listener
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		endHost = func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
		theHost.address = hostAddress(t, &out)
	})
	if theHost.address == "" {
		t.Fatal("the host does not start")
	}
	return "--on=*=" + theHost.address
}

// hostAddress waits for the address that a host prints.
func hostAddress(t testing.TB, out *listener) string {
	t.Helper()
	ready := regexp.MustCompile(`COMPONENT=(127\.0\.0\.1:\d+) on this machine`)
	for range 600 {
		if found := ready.FindStringSubmatch(out.String()); found != nil {
			return found[1]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the host is not ready: %s", out.String())
	return ""
}

// offering starts a host with options in a process of its own, and returns it with its address.
func offering(t testing.TB, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"host", "--listen", "127.0.0.1:0"}, args...)...)
	return p, hostAddress(t, &p.out)
}

// Over a host every preset gives the bytes of a local run.
func TestHostPresets(t *testing.T) {
	take := long.Sample(13)
	flag := hostFlag(t)
	for _, p := range algorithms.Presets() {
		for _, name := range []string{"quarter-car-a", "two-mass-ff"} {
			if !take() || algorithms.UsesEnergy(p.Name) && name == "two-mass-ff" { // it has no power bond
				continue
			}
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				stop := map[string]string{"quarter-car-a": "0.2", "two-mass-ff": "0.1"}[name]
				if o := same(t, flag, system(t, name), "--algorithm", p.Name, "--stop-time", stop); o.code != 0 || o.rows < 10 {
					t.Errorf("exit code %d, %d rows\n%s", o.code, o.rows, o.output)
				}
			})
		}
	}
}

// The manifest says where components run, and those that are not named run here. A component may be named by the
// document.
func TestHostComponents(t *testing.T) {
	flag := hostFlag(t)
	address := strings.TrimPrefix(flag, "--on=*=")
	o := complete(t, system(t, "quarter-car-a"), "--on", "whe*="+address, "--stop-time", "0.1")
	if why := o.isolated(); len(why) != 1 || why["wheel"] != "it runs on host "+address {
		t.Errorf("isolated: %v", why)
	}
	dir := t.TempDir()
	element := placed(member{name: "m", fmu: "mass_force"}.component(""), address)
	if err := build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), document("1", element, ""))
	o = complete(t, filepath.Join(dir, "SystemStructure.ssd"))
	if why := o.isolated(); why["m"] != "it runs on host "+address || !strings.Contains(o.manifest.Sources["on m"], "SystemStructure.ssd") {
		t.Errorf("isolated: %v, sources %v", why, o.manifest.Sources)
	}
	if o := call(t, "run", system(t, "quarter-car-a"), "--on", "whel="+address); o.code == 0 || !strings.Contains(o.output, `no component is called "whel"`) {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}

// A URL in place of a host is an error of usage everywhere. It is printed without the password.
func TestHostURL(t *testing.T) {
	t.Parallel()
	const url = "nats://me:secret@broker:4222"
	car := system(t, "quarter-car-a")
	dir := t.TempDir()
	path, output := filepath.Join(dir, "SystemStructure.ssd"), filepath.Join(dir, "output")
	element := placed(member{name: "m", fmu: "mass_force"}.component(""), url)
	if err := build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	write(t, path, document("1", element, ""))
	for _, args := range [][]string{
		{"run", car, "--output", output, "--on", "wheel=" + url},
		{"run", car, "--output", output, "--on", strings.Replace(url, "secret", "s=secret", 1)},
		{"run", car, "--output", output, "--on", "=" + url},
		{"run", path, "--output", output},
		{"analyze", car, "--on", url},
		{"analyze", path},
		{"validate", filepath.Join(dir, "mass_force.fmu"), "--dynamic", "--on", url},
		{"study", car, "--output", output, "--vary", "wheel.d_c=500,1000", "--collect", "final(chassis.v_c)", "--run", "on=wheel=" + url},
		{"host", "list", url},
	} {
		o := call(t, args...)
		o.is(t, 2, "nats://broker:4222: a host of FMUs has no URL", "start macrostep host --listen")
		if _, err := os.Stat(output); err == nil || strings.Contains(o.output, "secret") || strings.Contains(o.output, "give one host") {
			t.Errorf("%q: %v\n%s", args, err, o.output)
		}
	}
}

// placed lets components of a document run on a host.
func placed(components, address string) string {
	return strings.ReplaceAll(components, "</ssd:Component>", `<ssd:Annotations>
  <ssc:Annotation type="com.github.macrostep"><ms:Component xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" host="`+address+`"/>
  </ssc:Annotation></ssd:Annotations></ssd:Component>`)
}

// A host offers the FMUs of its folders, and no others. macrostep host list shows them.
func TestHostOffers(t *testing.T) {
	dir := t.TempDir()
	if err := build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	p, address := offering(t, dir, "--max-instances", "8")
	complete(t, filepath.Join(dir, "mass_force.fmu"), "--on", address, "--stop-time", "1")
	o := call(t, "host", "list", address, "--json")
	var list []struct {
		Instances    int
		MaxInstances int `json:"max_instances"`
		Trip         float64
		Offers       []struct{ Name, Hash string }
	}
	if err := json.Unmarshal([]byte(o.output), &list); err != nil || len(list) != 1 || len(list[0].Offers) != 1 || list[0].Offers[0].Name != "mass_force.fmu" ||
		list[0].MaxInstances != 8 || list[0].Instances != 0 {
		t.Errorf("%v: %s", err, o.output)
	}
	o = call(t, "run", system(t, "quarter-car-a"), "--on", address)
	if o.code == 0 || !strings.Contains(o.output, "does not offer") || !strings.Contains(o.output, "--accept") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
	p.signal(t, os.Interrupt)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d of the host\n%s", code, p.out.String())
	}
	o = call(t, "run", filepath.Join(dir, "mass_force.fmu"), "--on", address)
	if o.code == 0 || !strings.Contains(o.output, "connection refused") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}

// Without a folder of the user there are no tickets and no secrets, also not in the temporary folder. A ticket can be given by its path.
func TestHostWithoutHome(t *testing.T) {
	address := strings.TrimPrefix(hostFlag(t), "--on=*=")
	dir, err := host.TicketDir()
	if err != nil {
		t.Fatal(err)
	}
	ticket := filepath.Join(dir, strings.ReplaceAll(address, ":", "_")+".json")
	path := fmu(t, "mass_force")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
	const remedy = "set HOME or XDG_CONFIG_HOME"
	call(t, "host", "--accept", "--listen", "127.0.0.1:0").is(t, 2, "no folder for the tickets", remedy)
	call(t, "host", "list").is(t, 2, "no folder for the tickets", remedy)
	run(t, path, "--on", address).is(t, 2, remedy, "or give the ticket of host "+address)
	call(t, "host", "list", address).is(t, 1, remedy, "or give the ticket of host "+address)
	call(t, "host", "list", ticket).is(t, 0, "any FMU that is sent")
	complete(t, path, "--on", ticket, "--stop-time", "1")
}

// A run whose host is killed goes on when the host is there again, with the results of an undisturbed run.
func TestHostLost(t *testing.T) {
	dir := t.TempDir()
	if err := build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mass_force.fmu")
	want := complete(t, path, "--step-size", "1e-4", "--stop-time", "4", "--record", "*")
	p, address := offering(t, dir)
	r := start(t, "run", path, "--step-size", "1e-4", "--stop-time", "4", "--record", "*", "--on", address)
	for range 6000 { // until it is under way
		if info, err := os.Stat(r.path("results.csv")); err == nil && info.Size() > 1000 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end()
	again := start(t, "host", dir, "--listen", address)
	if code := r.end(); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, r.out.String(), again.out.String())
	}
	if got := read(t, r.path("results.csv")); string(got) != string(read(t, want.results)) {
		t.Errorf("the results differ\n%s", r.out.String())
	}
}

// What works with FMUs in processes of their own works on a host: checkpoints, limits, analysis, trials.
func TestHostAbilities(t *testing.T) {
	flag := hostFlag(t)
	path := system(t, "quarter-car-a")
	r := start(t, "run", path, flag, "--stop-time", "0.2", "--checkpoint", "0.1", "run.checkpoint")
	if code := r.end(); code != 0 {
		t.Fatal(r.out.String())
	}
	o := call(t, "run", "--resume", r.path("run.checkpoint"), "--stop-time", "0.3")
	if o.code != 0 || !strings.Contains(o.output, "complete") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
	local := complete(t, path, "--stop-time", "0.3")
	if string(read(t, r.path("results.csv"))) != string(read(t, local.results)) {
		t.Error("a resumed run on a host differs from a local one")
	}
	r = start(t, "run", path, flag, "--quirk", "wheel=noRollback", "--stop-time", "0.1")
	want := "is lost, the run ends and keeps its rows, because the state of wheel cannot be serialised"
	if code := r.end(); code != 0 || strings.Count(r.out.String(), want) != 1 {
		t.Errorf("exit code %d\n%s", code, r.out.String())
	}
	o = run(t, fmu(t, "misbehave"), flag, "--set", "fault=Segfault", "--set", "at=0.35", "--step-size", "0.001", "--stop-time", "1")
	if o.code == 0 || o.rows < 3 || o.manifest.Status == "complete" {
		t.Errorf("exit code %d, %d rows, %+v\n%s", o.code, o.rows, o.manifest.Outcome, o.output)
	}
}

// The commands of the page on hosts run as they stand, but for the port.
func TestHostsPage(t *testing.T) {
	page, _, ok := strings.Cut(string(read(t, filepath.Join("..", "docs", "hosts.md"))), "\n## On two machines\n")
	if !ok {
		t.Fatal("the page has no section on two machines")
	}
	dir := t.TempDir()
	before, after, ok := strings.Cut(page, "    macrostep host car\n")
	if !ok {
		t.Fatal("the page starts no host")
	}
	all := func(string) bool { return false }
	runPage(t, dir, before, all)
	cmd := exec.Command(program, "host", "car", "--listen", "127.0.0.1:0")
	cmd.Dir = dir
	host := started(t, cmd)
	ran, _ := runPage(t, dir, strings.ReplaceAll(after, "127.0.0.1:7447", hostAddress(t, &host.out)), all)
	if ran["run"] != 2 || ran["host"] != 1 {
		t.Errorf("%v were run", ran)
	}
}
