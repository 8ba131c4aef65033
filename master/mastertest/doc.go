// Package mastertest helps whoever writes a subsystem or an algorithm: a
// conformance suite for each ([TestSubsystem], [TestAlgorithm]), an exact linear
// subsystem ([Linear]), a wrapper that fails on purpose ([Faulty]), and a
// recorder that keeps everything ([Memory]).
package mastertest
