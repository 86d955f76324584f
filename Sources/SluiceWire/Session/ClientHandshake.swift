/// The client's half of the handshake: HELLO out, WELCOME or a refusal in.
public struct ClientHandshake: Sendable {
  /// The first frame of this client, on stream 0.
  public var hello: Hello

  public init(hello: Hello) {
    self.hello = hello
  }

  /// Reads the first frame that the broker sends.
  ///
  /// - Throws: the broker's own refusal, or a connection error when the frame is neither that nor a WELCOME that answers `hello`.
  public func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Welcome {
    if header.type == .error, header.stream == 0 {
      let refusal = try unsafe Fault(body: body)
      throw WireError(refusal)
    }
    guard header.type == .welcome else {
      throw WireError(
        .notSluice, "the broker must answer with WELCOME: the peer doesn't speak the Sluice protocol")
    }
    _ = try header.admission(at: .client)
    let welcome = try unsafe Welcome(body: body)
    guard hello.versions.contains(welcome.version) else {
      throw WireError(
        .versionMismatch,
        "the broker chose version \(welcome.version), this client speaks \(hello.versions.lowerBound) to "
          + "\(hello.versions.upperBound)")
    }
    guard welcome.features & ~hello.features == 0 else {
      throw WireError(.malformedFrame, "WELCOME grants features that HELLO didn't name")
    }
    guard welcome.maximumFrame >= Limits.smallestFrame, welcome.maximumStreams > 0 else {
      throw WireError(
        .malformedFrame,
        "WELCOME limits frames to \(welcome.maximumFrame) bytes and streams to \(welcome.maximumStreams); "
          + "at least \(Limits.smallestFrame) and 1 must be taken")
    }
    return welcome
  }
}
