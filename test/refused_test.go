package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What flags and documents show to be wrong ends a command with exit code 2 and one message, before an FMU is called
// and without a file being written.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ subject, args, says string }{
		{"quarter-car-a", "--param ordre=1", `algorithm explicit has no parameter "ordre"; it has scheme, order`},
		{"quarter-car-a", "--set wheel.M_w=1", `component wheel has no variable "M_w"; did you mean "m_w"?`},
		{"quarter-car-a", "--set wheel.m_w=NaN", "wheel.m_w"},
		{"quarter-car-a", "--set wheel.F_c=1", "wheel.F_c"},
		{"quarter-car-a", "--step-size 1e-300", "step"},
		{"quarter-car-a", "--algorithm im-milne --param control.atol=nope.x:1", "nope.x"},
		{"quarter-car-a", "--algorithm gauss-seidel --param sequence=chassis", "wheel"},
		{"quarter-car-a", "--rate nope=2", "nope"},
		{"energy-oscillator", "--record bond.* --rate left=1/2 --rate right=1/3",
			"left takes one step over 2 macro steps and right over 3"},
		{"crane", "--algorithm energy-correction --param energy.limit-absolute=mechanics.v_c:100",
			"energy.limit-absolute names mechanics.v_c, which is not the action of a bond"},
		{"quarter-car-a", "--realtime --algorithm implicit", "in real time the work of a macro step must have a bound"},
		{"quarter-car-a", "--realtime=0", "0 is not greater than 0"},
		{"quarter-car-a", "--realtime --overrun late", "not one of catch-up, skip, stop"},
		{"quarter-car-a", "--overrun stop", "needs --realtime"},
		{"quarter-car-a", "--realtime --realtime-priority 100", "is not between 1 and 99"},
		{"quarter-car-a", "--realtime=1e9", "less than a microsecond"},
		{"quarter-car-a", "--quirk life=noterminate", `no quirk "noterminate"; did you mean "noTerminate"?`},
		{"quarter-car-a", "--quirk =noTerminate", "is not COMPONENT=NAME"},
		{"quarter-car-a", "--quirk death=noTerminate", `no component is called "death"`},
		{"quarter-car-a", "--quirk noRollback",
			"the quirk noRollback needs the name of a component, COMPONENT=noRollback; the system has chassis, wheel"},

		// Rollback that an FMU does not offer.
		{"misbehave_plain", "--param discard=shorten",
			"bad (misbehave_plain.fmu): capability missing: discarded steps are shortened only if every subsystem can roll back"},
		{"misbehave_constant", "--param discard=shorten", "choose discard=stop, with which a discarded step ends the run"},
		{"misbehave_plain", "--checkpoint 0.2 x", "bad (misbehave_plain.fmu) cannot serialise its state"},
		{"misbehave_plain", "--on-crash restart", "bad (misbehave_plain.fmu) cannot serialise"},
		{"misbehave", "--on-crash restart --quirk bad=noRollback", "bad (misbehave.fmu) cannot serialise"},

		{"misbehave", "--on-crash again", `"again" is not one of stop, restart`},
		{"misbehave", "--on-crash restart:no", `"no" is not a whole number`},
		{"misbehave", "--on-crash restart --isolate never", "--on-crash restart needs FMUs in separate processes"},
		{"misbehave", "--checkpoint -1 x", `"-1 x" is not EVERY FILE with a number of seconds`},
		{"misbehave", "--checkpoint 0.1 results.csv", "are the same file"},
		{"misbehave", "--checkpoint 0.1 nowhere/x", "create the folder first"},
		{"misbehave", "--resume nowhere", "nowhere"},

		// Bonds that are none, with the reason.
		{"quarter-car-a", "--bond axle=wheel.F_c", "NAME=COMPONENT.EFFORT:COMPONENT.FLOW"},
		{"quarter-car-a", "--bond axle=wheel.F_c:chassis.v_c --bond axle=-wheel.F_c:chassis.v_c", "axle is given twice"},
		{"quarter-car-a", "--bond axle=wheel.F_c:chassis.v", `no variable "v"`},
		{"quarter-car-a", "--bond axle=wheel.F_c:chassis.z_c", "bond axle: wheel.F_c and chassis.z_c"},
		{"quarter-car-a", "--bond axle=wheel.F_c:wheel.v_w", "wheel.F_c and wheel.v_w are outputs of the same component"},
		{"two-mass-fd", "--bond half=coupling.F:mass2.v", "coupling.F is not connected to mass2: one direction of the exchange is missing"},
		{"quarter-car-a", "--bond axle=chassis.v_c:wheel.F_c",
			"chassis.v_c (m/s) is the flow and wheel.F_c (N) the effort; write wheel.F_c:chassis.v_c"},
		{"quarter-car-a", "--bond axle=wheel.v_w:chassis.v_c", "both sides give the same kind"},
		{"pendula", "--bond x=left.f_x:right.v_x --bond y=left.f_y:right.v_y,left.f_x:right.v_x",
			"bond y: right.f_x already belongs to bond x"},
		{"pendula", "--bond tips=left.f_x:right.v_x,left.f_y:right.v_x", "bond tips: left.v_x_other already belongs to bond tips"},
		{"energy-star-3", "--bond one=left1.f:right.v --bond two=left1.f:right.v", "bond two: right.f[1] already belongs to bond one"},

		{"quarter-car-b", "analyze --order 9", "--order: 9 is not between 0 and 5"},
		{"quarter-car-b", "analyze --budget 0", "--budget: 0 is not greater than 0"},
		{"quarter-car-b", "analyze --error 5", "for 5 %, write 5%"},
		{"quarter-car-b", "analyze --from 1 --to 0.1", "--from 1 is not below --to 0.1"},
		{"quarter-car-b", "analyze --step-size NaN", `--step-size: "NaN" is not a finite number`},
		{"quarter-car-b", "analyze --set wheel.nothing=1", "nothing"},
		{"quarter-car-b", "analyze --rate wheel=1/a", "is not COMPONENT=N or COMPONENT=1/N"},
		{"quarter-car-b", "analyze --rate whel=2", `a rate names "whel", which is not a component of the system`},
	} {
		t.Run(c.subject+" "+c.args, func(t *testing.T) {
			t.Parallel()
			dir, args := t.TempDir(), strings.Fields(c.args)
			if args[0] != "analyze" {
				args = append([]string{"run", "--debug", "calls=calls.txt"}, args...)
			}
			path := c.subject
			if strings.HasPrefix(path, "misbehave") {
				path = badPair(t, path)
			} else {
				path = system(t, path)
			}
			code, output := macrostepIn(t, dir, append(args, path)...)
			if code != 2 || strings.Count(output, "macrostep: ") != 1 || !strings.Contains(output, c.says) {
				t.Errorf("exit code %d, want 2 and %q in\n%s", code, c.says, output)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls.txt")) // which the run may not have made
			for _, name := range listed(t, dir) {
				if len(calls) > 0 || name != "calls.txt" {
					t.Errorf("left: %s, calls %.200s", name, calls)
				}
			}
		})
	}
}
