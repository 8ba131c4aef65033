package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// judgeFindings divides findings in the documents of a system into warnings and notes. Notes are complete. Several
// warnings about one file become one line, with the command that lists them, and notes.
func judgeFindings(system string, findings []diag.Finding) (warnings, notes []string) {
	var files []string
	of := map[string][]diag.Finding{}
	for _, f := range findings {
		if f.Level == diag.Info {
			notes = append(notes, f.String())
			continue
		}
		if f.File == "" { // a setting of the user
			warnings = append(warnings, f.Brief())
			continue
		}
		file, _, _ := strings.Cut(f.File, "!") // the archive of a document
		if of[file] == nil {
			files = append(files, file)
		}
		of[file] = append(of[file], f)
	}
	for _, file := range files {
		list := of[file]
		if len(list) == 1 {
			warnings = append(warnings, list[0].Brief())
			continue
		}
		var ids []string
		for _, f := range list {
			notes = append(notes, f.String())
			if !slices.Contains(ids, f.ID) {
				ids = append(ids, f.ID)
			}
		}
		warnings = append(warnings, fmt.Sprintf("%s: %d findings (%s) may affect the results, the first: %s; to see all: macrostep validate %s",
			file, len(list), strings.Join(ids, ", "), list[0].Message, system))
	}
	return warnings, notes
}
