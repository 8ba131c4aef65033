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

   name: a sensor that drifts, then fails        # free text, as is description
   stop-on-failure: true                         # end where an expectation fails
   events:
     - at: 0.5                                   # s
       offset: {plant.position: 0.01}            # as all others see it
     - when: plant.position > 0.2                # or a list, all of which must hold
       from: 1                                   # not before, s
       freeze: [plant.position]
       for: 0.3                                  # released after that, s
     - at: 2
       set: {controller.limit: 10, driver.on: true}
       replay: {driver.pedal: {file: pedal.csv, column: pedal, relative: true}}
     - when: plant.position > 1
       stop: the plant has left its range
   expect:
     - {variable: plant.position, at: 2, value: 0.1, tolerance: 0.02}
     - {variable: plant.force, always: {from: 0.1, until: 3}, max: 500}
     - {variable: plant.velocity, eventually: {until: 3}, min: -0.01, max: 0.01}

Events happen once, at the first communication point at or after their time, or at
which the condition (< <= > >= == !=) holds; where the algorithm chooses the
steps, one ends at each time of the file exactly. What is done holds from there on
and is in the results of that point; the start is a communication point, too. Of
two events at one point the one with the earlier time comes first, then the
earlier in the file.

   set      {VARIABLE: VALUE}   a value instead of what it is
   scale    {VARIABLE: FACTOR}  FACTOR times what it is; with offset, scaled first
   offset   {VARIABLE: NUMBER}  what it is plus NUMBER
   freeze   [VARIABLE, …]       what it is now
   replay   {VARIABLE: FILE}    column VARIABLE of a table like that of --input, by
                                the time of the run; {file, column, relative: true}:
                                by the time since the event. Held over each step.
   release  [VARIABLE, …]       no more of these
   stop     REASON              the run ends here, as complete

VARIABLE is component.variable (of one FMU also variable): an input, whatever it is
connected to; an output,
as those see it that it feeds (in the results it stays what it is, and their
inputs show the difference); or a parameter that may change after the
initialisation (tunable). A VALUE of an enumeration is one of its items, by name or
number, in conditions, expectations and replayed tables, too. Scale and offset are
for Reals. Each variable follows
what was done last with it. What is set at an output is applied before what is set
at the inputs that it feeds.

Expectations are judged at communication points, after the events there: at a time
(the first point at or after it), always or eventually (in a window, or over the
whole run), by min and max, or by value with a tolerance (absolute), relative (a
part of the value) or their sum. They and conditions see an input as it is set and
an output as its component gives it, whatever is done with it. An expectation that
fails, or is never judged, makes the exit code 1; the message names time, value and
limit. Where a run fails or is interrupted, what was not decided by then is not
judged. The outcome of the run says whether all are met. The manifest (scenario) has
all of them, the events that happened, and the variables that were manipulated.
A checkpoint (--checkpoint) holds what has happened, what is set and what was
seen of the expectations: the run that is resumed goes on with the scenario.`
