/// The broker's half of the handshake: HELLO in, WELCOME or a refusal out.
public struct ServerHandshake: Sendable {
  /// This broker's offer. Version, features and keepalive are settled with each client; its keepalive of 0 means that it asks for
  /// none.
  public var offer: Welcome

  public init(offer: Welcome) {
    self.offer = offer
  }

  /// The agreed result.
  public struct Agreement: Hashable, Sendable {
    public var welcome: Welcome
    /// The longest frame body that the client takes, in bytes.
    public var clientMaximumFrame: Int
    /// The client's name for itself, cut to ``Limits/name``.
    public var clientName: String
    /// The identity that the client claims.
    public var credentials: Credentials
  }

  /// Answers the first frame of a connection.
  ///
  /// - Throws: a connection error when it isn't a HELLO, or one that can't be agreed with.
  public func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Agreement {
    guard header.type == .hello else {
      throw WireError(.notSluice, "the first frame must be HELLO: the peer doesn't speak the Sluice protocol")
    }
    _ = try header.admission(at: .broker)
    let hello = try unsafe Hello(body: body)
    guard hello.versions.overlaps(Limits.versions) else {
      throw WireError(
        .versionMismatch,
        "the client speaks versions \(hello.versions.lowerBound) to \(hello.versions.upperBound), this broker "
          + "\(Limits.versions.lowerBound) to \(Limits.versions.upperBound)")
    }
    guard hello.maximumFrame >= Limits.smallestFrame else {
      throw WireError(
        .malformedFrame,
        "HELLO limits frames to \(hello.maximumFrame) bytes; at least \(Limits.smallestFrame) must be taken")
    }
    var welcome = offer
    welcome.version = min(hello.versions.upperBound, Limits.versions.upperBound)
    welcome.features = offer.features & hello.features
    welcome.keepalive = Self.keepalive(wanted: hello.keepalive, offered: offer.keepalive)
    return Agreement(
      welcome: welcome, clientMaximumFrame: Int(min(hello.maximumFrame, UInt32(Int32.max))),
      clientName: String(hello.name.utf8Prefix(Int(Limits.name))) ?? "", credentials: hello.credentials)
  }

  /// The shorter of the two deadlines, in which 0 means that a side sets none, but not below 100 ms, so that a client can't
  /// keep the broker busy with pings.
  static func keepalive(wanted: UInt32, offered: UInt32) -> UInt32 {
    switch (wanted, offered) {
    case (0, let other), (let other, 0): other == 0 ? 0 : max(other, 100)
    default: max(min(wanted, offered), 100)
    }
  }
}
