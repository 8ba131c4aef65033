// Package study makes many runs of one system, with other parameters, start values or settings in
// each, and reduces each run to a row of numbers.
//
//	plan, err := study.Read("study.yaml")
//	design, err := plan.Variants()             // the values of every run, before the first one
//	model, err := study.Open(ctx, plan, study.Options{})
//	err = study.Local(model, 0).Run(ctx, design.Variants, func(r study.Row) error { … })
//
// An [Executor] makes the runs. [Local] makes them in this process, which an FMU that crashes takes
// along; the command line has one that gives them to supervised processes on any number of
// machines. [Study] joins plan, executor and a folder of results, goes on from what is in the
// folder, optimises, and halves steps until a value settles.
//
// A row depends on its variant only: neither the executor nor the order of the runs changes a value.
package study
