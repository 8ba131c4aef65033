// Package analyze reports what runs of a coupled system with other algorithms and steps show beside a run: how large its error is, up to
// which step it is usable, and which setting is better (package measure makes the runs), with the structure of the coupling.
package analyze
