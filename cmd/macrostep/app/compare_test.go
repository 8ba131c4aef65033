package app

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCompareCommand(t *testing.T) {
	const a, b = "time,car.v,car.F\n0,0,1\n1,1,1\n2,2,1\n", "Time [s];car.v;car.F;z\n0;0;1,0;0\n1;1,3;1,0;0\n2;1,6;1,0;0\n"
	compare := func(args ...string) (int, string, string) {
		t.Helper()
		dir := t.TempDir()
		return call(t, &fake{}, append([]string{"compare", write(t, dir+"/a.csv", a), write(t, dir+"/b.csv", b)}, args...)...)
	}
	code, stdout, stderr := compare()
	if code != exitFailed || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// By hand: the mean square is 0.25/3, the range 2.
	contains(t, "the comparison", stdout, "decimal commas", "compared at 3 points from 0 to 2 s\n", "norm: range of A",
		"car.v     0.1443  0.4  2     2  1.6  0.002  differs", "car.F     0       0    0     1  1    0.001  (A is constant)", "only in B: z", "1 of 2 variables compared differ")
	for args, want := range map[string]int{
		"--rtol|0.21": exitDone, "--rtol|0.19": exitFailed, "--rtol|0.21|--strict": exitFailed, "--atol|0.41": exitDone,
		"--rtol|0.21|--rtol|*.v=0.1": exitFailed, "--rtol|0.1|--rtol|*.v=0.21": exitDone, "--select|car.F|--strict": exitDone,
		"--nrmse|0.15": exitDone, "--nrmse|0.14": exitFailed, "--nrmse|0.23|--norm|rms": exitDone, "--nrmse|0.22|--norm|rms": exitFailed,
		"--rtol|0.5|--match|car.v=z": exitFailed,
	} {
		if code, stdout, stderr := compare(strings.Split(args, "|")...); code != want || stderr != "" && code != exitUsage {
			t.Errorf("%s: exit code %d, not %d\n%s%s", args, code, want, stdout, stderr)
		}
	}
	// A tolerance for one variable leaves the default of the others.
	if code, stdout, _ := compare("--atol", "car.F=1"); code != exitFailed || !strings.Contains(stdout, "0.002  differs") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	// A pattern that matches nothing gives a warning.
	for args, want := range map[string]string{
		"--rtol|wheel.*=1":                "--rtol wheel.*=1",
		"--atol|car.v=9|--nrmse|z=0.1":    "--nrmse z=0.1",
		"--rtol|car.x=1|--nrmse|*.v=0.15": "--rtol car.x=1",
	} {
		code, stdout, stderr := compare(strings.Split(args, "|")...)
		if stderr != "warning: "+want+": matches no variable that is compared\n" {
			t.Errorf("%s: %s", args, stderr)
		}
		if limit, wanted := strings.Contains(stdout, "0.002  differs"), strings.Contains(args, "wheel"); limit != wanted || (code == exitFailed) != wanted {
			t.Errorf("%s: exit code %d:\n%s", args, code, stdout)
		}
	}
	// Rounding is mentioned if it explains the difference, and not beside NaN.
	for b, want := range map[string]bool{"time,x\n0,1.23\n1,4\n": true, "time,x\n0,1.23\n1,NaN\n": false, "time,x\n0,1.3\n1,4\n": false} {
		dir := t.TempDir()
		code, stdout, _ := call(t, &fake{}, "compare", write(t, dir+"/a.csv", "time,x\n0,1.2345\n1,4\n"), write(t, dir+"/b.csv", b))
		if strings.Contains(stdout, "the rounding of B") != want || code != exitFailed {
			t.Errorf("%s: exit code %d:\n%s", b, code, stdout)
		}
	}
	_, stdout, _ = compare("--json")
	var doc struct {
		Agree     bool
		Points    int
		Variables []struct {
			Name             string
			NRMSE, Max, At   *float64
			Agrees, Constant bool
		}
		B struct{ Only []string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || doc.Agree || doc.Points != 3 || len(doc.Variables) != 2 || number(*doc.Variables[0].Max) != "0.4" || *doc.Variables[0].At != 2 || doc.Variables[0].Agrees || !doc.Variables[1].Agrees || len(doc.B.Only) != 1 {
		t.Errorf("%v: %s", err, stdout)
	}
	dir := t.TempDir()
	both := "compare|" + write(t, dir+"/a.csv", a) + "|" + write(t, dir+"/b.csv", b)
	refuses(t, dir, &fake{}, map[string]string{
		both + "|--rtol|x":           `--rtol: "x" is not a finite number`,
		both + "|--atol|a=-1":        `--atol: a=-1: -1 is less than 0`,
		both + "|--norm|l1":          `--norm: "l1" is not one of range, rms`,
		both + "|--match|x":          `--match: "x" is not A=B`,
		both + "|--match|q=z":        "a.csv has no variable q",
		both + "|--time-tolerance|0": `--time-tolerance: 0 is not greater than 0`,
		both + "|--select|x.*":       `--select: no variable matches "x.*"; `,
		"compare|a.csv":              "A B (two tables) is missing",
	})
}
