// Package validate judges files before anyone relies on them: FMUs, their model
// descriptions, SSP packages and documents, system structures of OSP.
//
//	report, err := validate.File(ctx, "system.ssp", validate.Options{})
//	for _, f := range report.Findings { fmt.Println(f) }
//
// The rules are data: Rules lists all that there are, from the packages that check
// them, so that a run and a validation find the same. Nothing of an FMU is executed,
// unless Options.Dynamic asks for the trial of each FMU in a process of its own.
//
// Ids begin with the subject: FA for archives and binaries, MD for
// model descriptions, DY for trials of one FMU, SD for SSP and OSP, CC for the
// coupling. Elsewhere tells of the numbers that no rule of their own has.
package validate
