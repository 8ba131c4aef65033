package record

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// HashFile returns the SHA-256 of a file as "sha256:" and hexadecimal digits.
func HashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}
