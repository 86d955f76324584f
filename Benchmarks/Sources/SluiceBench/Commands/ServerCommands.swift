import CLinux
import Glibc

/// `sluice-bench copy-server`: the byte-copying broker.
enum CopyServerCommand {
  static let usage = """
    sluice-bench copy-server [--port N]   (0, the default, picks one)   [--ring BYTES] [--chunk BYTES]
    """

  static func run(_ words: [String]) throws -> Never {
    var arguments = Arguments(words)
    let port = try arguments.integer("port", in: 0...65_535) ?? 0
    let ring = try arguments.integer("ring", in: 65_536...1_073_741_824) ?? 1 << 20
    let chunk = try arguments.integer("chunk", in: 4096...1_073_741_824) ?? 1 << 17
    try arguments.finish()
    let server = try CopyServer(port: UInt16(port), ringSize: ring, chunk: chunk)
    print("copy-server listening on 127.0.0.1:\(server.port)")
    server.run()
  }
}

/// `sluice-bench pong-server`: answers each request of a fixed length with an answer of a fixed length, one connection after another.
enum PongServerCommand {
  static let usage = """
    sluice-bench pong-server --port N --request BYTES --answer BYTES [--poll]   (for the round trips of `client`)
    """

  static func run(_ words: [String]) throws -> Never {
    var arguments = Arguments(words)
    let port = try arguments.integer("port", in: 0...65_535) ?? 0
    let request = try arguments.integer("request", in: 1...65_536) ?? 20
    let answer = try arguments.integer("answer", in: 1...65_536) ?? 156
    let polls = arguments.flag("poll")
    try arguments.finish()
    let listener = try Socket.listen(port: UInt16(port))
    while true {
      guard let socket = listener.accept() else { continue }
      defer { socket.close() }
      if polls {
        try serve(socket, request, answer, Poller())
      } else {
        _ = fcntl(socket.descriptor, F_SETFL, fcntl(socket.descriptor, F_GETFL) & ~O_NONBLOCK)
        try serve(socket, request, answer, nil)
      }
    }
  }

  /// Serves a connection until the peer closes it.
  private static func serve(_ socket: Socket, _ request: Int, _ answer: Int, _ poller: Poller?) throws {
    poller?.add(socket.descriptor, interest: Poller.readable, number: 0)
    let buffer = PinnedBuffer(count: 65_536)
    var received = 0
    while true {
      if let poller { _ = poller.wait(milliseconds: -1) }
      let count = recv(socket.descriptor, buffer.base, buffer.count, 0)
      if count < 0, errno == EAGAIN || errno == EINTR { continue }
      guard count > 0 else { return }
      received += count
      while received >= request {
        received -= request
        guard send(socket.descriptor, buffer.base, answer, Int32(MSG_NOSIGNAL)) == answer else { return }
      }
    }
  }
}
