// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
)

// namedFiles are the files of one flag, or the arguments.
type namedFiles struct {
	flag  string // with its dashes; "" for arguments
	names []string
}

// checkFiles refuses what can only be a mistake of a script: a name that is empty, which would be the working folder, and standard input
// twice, of which the second one is nothing.
func checkFiles(all ...namedFiles) error {
	standard := 0
	for _, of := range all {
		for _, name := range of.names {
			switch {
			case name == "" && of.flag == "":
				return &exit{uncertain, errors.New("a file has an empty name: is a variable of your shell not set?")}
			case name == "":
				return &exit{uncertain, fmt.Errorf("%s is empty: write a file or a folder; is a variable of your shell not set?", of.flag)}
			case name == "-":
				standard++
			}
		}
	}
	if standard > 1 {
		return &exit{uncertain, errors.New("- is standard input, which can be read once: write it once, and a file in place of the others")}
	}
	return nil
}
