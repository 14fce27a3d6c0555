// Command oracle judges pods as kube-scheduler would: it links the scheduler's own plugins, runs
// them on the clusters that it is given and prints which nodes pass.
//
//	oracle            a case a line on stdin, an answer a line on stdout; see ../README.md
//	oracle --plugins  the plugins of the default profile, as JSON
//	oracle --validate also names, in each answer, what the API server would refuse
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

func main() {
	plugins := flag.Bool("plugins", false, "print the plugins of the default profile and exit")
	validate := flag.Bool("validate", false, "add to each answer what the API server would refuse")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	judge, err := newJudge(*validate)
	if err == nil && *plugins {
		err = json.NewEncoder(os.Stdout).Encode(judge.plugins())
	} else if err == nil {
		err = answerAll(judge, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func answerAll(judge *judge, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for number := 1; lines.Scan(); number++ {
		given := new(givenCase)
		if err := json.Unmarshal(lines.Bytes(), given); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if given.Pod == nil {
			return fmt.Errorf("line %d: pod: missing", number)
		}
		if err := encoder.Encode(judge.answer(given)); err != nil {
			return err
		}
		// Whoever asks may wait for this answer before the next case.
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}
