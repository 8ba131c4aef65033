// Package realtime measures how late a run in real time is, beside a loop in C.
//
//	go test ./test/realtime -seconds 60 -verdict
//
// runs the quarter car at 1 kHz for a minute beside it, and fails where a percentile of the lateness is more than
// twice that of the loop; -load N adds N threads that use the processors, -priority N schedules both by SCHED_FIFO.
// Without these it takes two seconds, and judges no time.
package realtime
