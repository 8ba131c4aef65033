// Package cluster distributes the runs of a study to engines on any number of machines.
//
// A [Queue] in the process of the study is its executor: it gives out variants and takes their rows. A [Worker] has its
// engines run variants, one at a time each; it reaches the queue through [Tasks]: in the same process directly, on another
// machine by a [Client]. A [Coordinator] answers the clients over NATS, through a server in this process ([Serve]) or one
// of the user's ([Offer]).
//
// The folder of the study is all that lasts: nothing is stored on a server. A client repeats a request until it is answered,
// so a worker has a row until that is in the folder, and every request may arrive twice.
//
// Subjects, with the names of a user, of a worker that it runs, and of a study:
//
//	macrostep.USER.WORKER.studies          which studies there are
//	macrostep.USER.WORKER.STUDY.join       versions, and the list of files
//	macrostep.USER.WORKER.STUDY.file       a piece of a file
//	macrostep.USER.WORKER.STUDY.next       the result of the last variant, and a request for another
//	macrostep.USER.WORKER.STUDY.hold       the variant is still being run
//	macrostep.USER.WORKER.STUDY.release    the engine gives back what it has
//	macrostep.USER.WORKER.STUDY.upload     a piece of what is too large for a message: a table that is kept, or a row
//	_INBOX.USER.>                          answers
//
// So a user needs the rights to publish to macrostep.USER.> and to subscribe to _INBOX.USER.>, and no others. Nobody else can send
// in its name or read its answers. With [Serve], each worker is a user. The coordinator checks all that a worker sends: its seal
// shows that the variant was given to the worker, and [study.Plan.CheckRow] that the row is valid. The first valid row of a
// variant counts, and a variant without one is given out again.
package cluster
