// Package cluster distributes the runs of a study to engines on any number of machines, over NATS JetStream.
//
// A [Coordinator] is the study's executor. It publishes a task for each variant and hands on their rows. A
// [Worker] takes tasks, one at a time for each of its engines, has them done, and publishes the rows. Both
// see a [Link] to a server only: one that [Serve] starts in this process, or a cluster of the user's.
//
// Names in JetStream, for a study with the identity ID:
//
//	stream MACROSTEP-ID-TASKS    macrostep.ID.task.N    a variant that waits or is being run (work queue)
//	stream MACROSTEP-ID-ROWS     macrostep.ID.row.N     the row of a variant, published once
//	                             macrostep.ID.death.N   an end of an engine during a variant
//	bucket macrostep-ID          index, and a file by its hash: the folder of the study
//	subject macrostep.ID.end     the study is over
//
// Exactly one row per variant: a row is published with the condition that its subject has none, and the task
// is acknowledged after that. So a task that is delivered twice results in one row.
package cluster
