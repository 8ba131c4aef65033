// Package process starts processes, ends them with their child processes, reports how they
// ended, and shares memory with them that can be read after their end.
//
// A parent and its child are usually the same program:
//
//	page, err := process.NewPage()
//	cmd := exec.Command(path, "engine") // see Image
//	numbers := process.Hand(cmd, page.File())
//	cmd.Env = append(os.Environ(), fmt.Sprint("PAGE=", numbers[0]))
//	child, err := process.Start(cmd, process.Options{Group: true, Bound: true})
//	<-child.Done()
//	text, _ := process.Reason(child.State())
//	last := page.Find("log") // what the child has left there
//
// The child opens the page with OpenPage and sets it with SetShared. Its packages get regions from
// Shared.
package process
