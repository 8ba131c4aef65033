// Package scenario plays test cases in a run: at times or on conditions it sets, scales,
// offsets, freezes and releases variables, replays tables into them or ends the run, and it
// checks expectations on variables.
//
//	s, err := scenario.Read(ctx, "fault.yaml")
//	player := s.Play()
//	run, err := master.NewRun(sys, alg, master.Options{…, Hooks: []master.Hook{player}})
//	result, err := run.Run(ctx)
//	err = player.Err() // the expectations that failed
//
// The run must read the variables of the scenario (Scenario.Variables). docs/scenarios.md describes the
// file.
//
// Invariants: Events happen at accepted communication points before these are recorded, so
// that they do not affect rejected attempts, and the same scenario gives the same bits with
// any number of workers. Variable steps end exactly at the times of the file; fixed steps pass
// them by less than a step.
package scenario
