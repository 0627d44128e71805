module example.invalid/decode

go 1.25.0

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/grafana/pyroscope/api v1.6.0
)

require (
	github.com/planetscale/vtprotobuf v0.6.1-0.20250313105119-ba97887b0a25 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
