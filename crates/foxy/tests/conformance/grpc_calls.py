"""Sends gRPC calls of each kind through a running foxy, and prints the names of the calls that pass.

Usage: grpc_calls.py PORT_OF_FOXY CERTIFICATE KEY PORT_OF_SERVER
foxy is a reverse proxy for the server that this program starts. Both have the same certificate.
"""

import concurrent.futures
import queue
import sys

import grpc

FOXY, CERTIFICATE, KEY, SERVER = sys.argv[1:]
PIECE = b"x" * (1 << 20)
SECONDS = 30


def unary(request, context):
    fields = dict(context.invocation_metadata())
    context.send_initial_metadata((("x-seen", fields["x-sent"]),))
    context.set_trailing_metadata((("x-last", "after the body"),))
    return request[::-1]


def failure(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now")


def server_stream(request, context):
    for number in range(int(request)):
        yield b"%d:" % number + PIECE


def client_stream(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def conversation(requests, context):
    for request in requests:
        yield request.upper()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def serve():
    """Starts the server and returns it."""
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Failure": grpc.unary_unary_rpc_method_handler(failure),
        "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
        "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
        "Conversation": grpc.stream_stream_rpc_method_handler(conversation),
    }
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", handlers),))
    credentials = grpc.ssl_server_credentials([(read(KEY), read(CERTIFICATE))])
    assert server.add_secure_port(f"localhost:{SERVER}", credentials)
    server.start()
    return server


def check_unary(channel):
    method = channel.unary_unary("/test.Test/Unary")
    answer, call = method.with_call(b"abc", metadata=(("x-sent", "1"),), timeout=SECONDS)
    assert answer == b"cba", answer
    assert dict(call.initial_metadata())["x-seen"] == "1", call.initial_metadata()
    assert dict(call.trailing_metadata())["x-last"] == "after the body", call.trailing_metadata()


def check_failure(channel):
    try:
        channel.unary_unary("/test.Test/Failure")(b"", timeout=SECONDS)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
        assert error.details() == "not now", error
    else:
        raise AssertionError("the call must fail")


def check_server_stream(channel):
    pieces = list(channel.unary_stream("/test.Test/ServerStream")(b"5", timeout=SECONDS))
    assert pieces == [b"%d:" % number + PIECE for number in range(5)]


def check_client_stream(channel):
    method = channel.stream_unary("/test.Test/ClientStream")
    assert method(iter([PIECE] * 5), timeout=SECONDS) == b"%d" % (5 * len(PIECE))


def check_conversation(channel):
    """Sends each message only after the answer to the message before."""
    messages = queue.SimpleQueue()
    messages.put(b"a")
    answers = channel.stream_stream("/test.Test/Conversation")(iter(messages.get, None), timeout=SECONDS)
    for expected, following in ((b"A", b"b"), (b"B", b"c"), (b"C", None)):
        assert next(answers) == expected
        messages.put(following)
    assert list(answers) == []


def main():
    server = serve()
    credentials = grpc.ssl_channel_credentials(read(CERTIFICATE))
    passed = []
    with grpc.secure_channel(f"localhost:{FOXY}", credentials) as channel:
        for check in (check_unary, check_failure, check_server_stream, check_client_stream, check_conversation):
            check(channel)
            passed.append(check.__name__.removeprefix("check_").replace("_", "-"))
    server.stop(0)
    print(*passed)


main()
