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
