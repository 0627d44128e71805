// SPDX-License-Identifier: BSD-2-Clause

// Reads profiles by the code of those who take them: Google's pprof, which checks all of it, and the messages of Pyroscope's
// published API, whose generated decoder is the server's. Prints a line of JSON for each file: {type: {function: sum}} of
// the functions in which a sample was, or a wait began, by both. They have to agree.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
)

type sums map[string]map[string]int64

// add counts a sample by its own function. The innermost frame of a wait says what it was for.
func (s sums) add(types []string, frames []string, values []int64) {
	own := 0
	for _, t := range types {
		if t == "off_cpu" {
			own = 1
		}
	}
	for i, t := range types {
		if s[t] == nil {
			s[t] = map[string]int64{}
		}
		s[t][frames[own]] += values[i]
	}
}

func byPprof(data []byte) (sums, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, err
	}
	var types []string
	for _, t := range p.SampleType {
		types = append(types, t.Type)
	}
	s := sums{}
	for _, sample := range p.Sample {
		var frames []string
		for _, l := range sample.Location {
			for _, line := range l.Line {
				frames = append(frames, line.Function.Name)
			}
		}
		s.add(types, frames, sample.Value)
	}
	return s, p.CheckValid()
}

func byPyroscope(data []byte) (sums, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	p := &googlev1.Profile{}
	if err = p.UnmarshalVT(plain); err != nil {
		return nil, err
	}
	var types []string
	for _, t := range p.SampleType {
		types = append(types, p.StringTable[t.Type])
	}
	functions, locations := map[uint64]string{}, map[uint64][]string{}
	for _, f := range p.Function {
		functions[f.Id] = p.StringTable[f.Name]
	}
	for _, l := range p.Location {
		for _, line := range l.Line {
			locations[l.Id] = append(locations[l.Id], functions[line.FunctionId])
		}
	}
	s := sums{}
	for _, sample := range p.Sample {
		var frames []string
		for _, id := range sample.LocationId {
			frames = append(frames, locations[id]...)
		}
		s.add(types, frames, sample.Value)
	}
	return s, nil
}

func decode(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	one, err := byPprof(data)
	if err != nil {
		return err
	}
	other, err := byPyroscope(data)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(one, other) {
		return fmt.Errorf("pprof reads %v, Pyroscope %v", one, other)
	}
	return json.NewEncoder(os.Stdout).Encode(one)
}

func main() {
	for _, path := range os.Args[1:] {
		if err := decode(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}
