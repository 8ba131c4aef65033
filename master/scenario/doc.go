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
// The run must read the variables of the scenario (Scenario.Variables). [Help] describes the
// file.
//
// Invariants: Events happen at accepted communication points before these are recorded, so
// that they do not affect rejected attempts, and the same scenario gives the same bits with
// any number of workers. Variable steps end exactly at the times of the file; fixed steps pass
// them by less than a step.
package scenario

// Help describes the file, for users.
const Help = `A scenario is a YAML file:

   name: a sensor drifts, then fails             # free text, like description
   stop-on-failure: true                         # end when an expectation fails
   events:
     - at: 0.5                                   # s
       offset: {plant.position: 0.01}            # as other components see it
     - when: plant.position > 0.2                # or a list: all must hold
       from: 1                                   # s; not earlier
       freeze: [plant.position]
       for: 0.3                                  # s; then released
     - at: 2
       set: {controller.limit: 10, driver.on: true}
       replay: {driver.pedal: {file: pedal.csv, column: pedal, relative: true}}
     - when: plant.position > 1
       stop: the plant has left its range
   expect:
     - {variable: plant.position, at: 2, value: 0.1, tolerance: 0.02}
     - {variable: plant.force, always: {from: 0.1, until: 3}, max: 500}
     - {variable: plant.velocity, eventually: {until: 3}, min: -0.01, max: 0.01}

An event happens once: at the first communication point at or after its time, or at
the first one where its condition (< <= > >= == !=) holds. Algorithms that choose
their steps end one exactly at each time of the file. An event acts at this point,
before it is recorded. Events at the same point happen in the order of their times,
then in the order of the file.

   set      {VARIABLE: VALUE}   sets the variable
   scale    {VARIABLE: FACTOR}  multiplies its value by FACTOR; scaled before offset
   offset   {VARIABLE: NUMBER}  adds NUMBER to its value
   freeze   [VARIABLE, …]       holds its present value
   replay   {VARIABLE: FILE}    takes its values from column VARIABLE of a table
                                like that of --input, at the time of the run, or
                                with {file, column, relative: true} at the time
                                since the event; held during each step
   release  [VARIABLE, …]       ends any of these
   stop     REASON              ends the run as complete

VARIABLE is component.variable, for a single FMU also variable. It may be
- an input, connected or not;
- an output: the components connected to it receive the changed value, while the
  results show the original value at the output and the changed one at the inputs;
- a tunable parameter.
The last event for a variable counts. Outputs are changed before the inputs that
they feed. Scale and offset work for Reals. Items of enumerations are given by name
or number, also in conditions, expectations and replayed tables.

Expectations are checked at communication points, after the events: at a time (the
first point at or after it), always or eventually (within a window, or during the
whole run). They use min and max, or value with tolerance (absolute), relative (a
share of the value), or both added. Expectations and conditions see inputs as they
are set, and outputs as their component computes them. If an expectation fails, or
could not be checked in a complete run, the exit code is 1, and a message gives
time, value and limit. If the run fails or is interrupted, open expectations are
undecided. The manifest (scenario) lists expectations, events and changed variables.
Checkpoints include the state of the scenario.`
