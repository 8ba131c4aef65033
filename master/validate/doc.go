// Package validate checks files against rules: FMUs, their model descriptions, SSP packages and
// documents, system structures of OSP.
//
//	report, err := validate.File(ctx, "system.ssp", validate.Options{})
//	for _, f := range report.Findings { fmt.Println(f) }
//
// Rules lists the rules of all packages that check them, so a run and a validation find the same
// violations. No code of an FMU is executed, unless Options.Dynamic enables the trial of each FMU in
// a separate process.
//
// IDs begin with the subject: FA for archives and binaries, MD for model descriptions, DY for trials
// of one FMU, SD for SSP and OSP, CC for the coupling. Elsewhere explains unused numbers.
package validate
