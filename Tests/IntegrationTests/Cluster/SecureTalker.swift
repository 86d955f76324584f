import SluiceWire
import TestSupport

/// A client consisting of TLS and the wire codec, with any certificate, which sends any frames. It uses `openssl s_client` for TLS.
final class SecureTalker {
  private let process: ChildProcess

  /// Connects to `tls://HOST:PORT`.
  ///
  /// - Parameters:
  ///   - authority: the authority that signed the broker's certificate.
  ///   - certificate: the files of a certificate and its key; nil to show none.
  init(_ address: String, authority: String, certificate: (file: String, key: String)?) throws {
    var arguments = [
      "s_client", "-quiet", "-verify_return_error", "-alpn", "sluice/1", "-CAfile", authority, "-connect",
      String(address.dropFirst("tls://".count)),
    ]
    if let certificate { arguments += ["-cert", certificate.file, "-key", certificate.key] }
    process = try ChildProcess("/usr/bin/openssl", arguments, input: .open)
  }

  deinit { process.stop() }

  /// Sends HELLO with these credentials.
  func hello(_ credentials: Credentials) throws {
    try send(
      Hello(versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "talker", credentials: credentials),
      stream: 0)
  }

  func send(_ frame: some Frame, stream: UInt32) throws { try process.write(frame.encoded(stream: stream)) }

  /// All frames received.
  var frames: [ReceivedFrame] {
    var decoder = FrameDecoder(maximumFrame: 64 << 20)
    var frames: [ReceivedFrame] = []
    try? process.standardOutput.bytes.withUnsafeBytes { bytes in
      try decoder.decode(bytes) { header, body throws(WireError) in
        frames.append(ReceivedFrame(header: header, body: Array(body)))
        return true
      }
    }
    return frames
  }

  /// The first frame of a stream; nil if the broker has closed the connection without one.
  func answer(on stream: UInt32) throws -> ReceivedFrame? {
    var frame: ReceivedFrame?
    try eventually("an answer on stream \(stream); \(process.messages)") {
      let hasEnded = process.currentExit != nil
      // Its last output may not have been read yet.
      if hasEnded { try process.waitForExit() }
      frame = frames.first { $0.stream == stream }
      return frame != nil || hasEnded
    }
    return frame
  }

  /// The error that ended a stream or the connection.
  func refusal(on stream: UInt32) throws -> ErrorCode? {
    try answer(on: stream).flatMap { $0.type == .error ? try $0.decode(Fault.self).code : nil }
  }

  var hasEnded: Bool { process.currentExit != nil }

  /// The messages of `openssl`.
  var messages: String { process.messages }
}
