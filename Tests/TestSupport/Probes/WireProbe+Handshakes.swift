import SluiceWire

extension WireProbe {
  /// Passes a frame to one side of the handshake. The client must accept the parameters that the broker agrees to.
  static func handshake(_ input: inout ProbeInput) throws {
    let isBroker = input.bool()
    let features = UInt64(input.byte())
    let keepalive: UInt32 = input.element(of: [0, 1, 99, 100, 60_000, .max])
    let offer = Welcome(
      features: features, maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 10,
      keepalive: keepalive, broker: 1, software: "broker")
    let type = FrameType(rawValue: input.byte())
    let flags = input.byte()
    let stream = UInt32(input.byte())
    let body = input.remaining()
    let header = FrameHeader(length: UInt32(body.count), type: type, flags: flags, stream: stream)
    try withExactMemory(body) { body in
      if isBroker {
        try ask(ServerHandshake(offer: offer), header, body)
      } else {
        let hello = Hello(features: features, maximumFrame: 1 << 20, keepalive: keepalive, name: "client")
        try answer(ClientHandshake(hello: hello), header, body)
      }
    }
  }

  private static func ask(
    _ handshake: ServerHandshake, _ header: FrameHeader, _ body: UnsafeRawBufferPointer
  ) throws {
    let agreement: ServerHandshake.Agreement
    do {
      agreement = try handshake.receive(header, body)
    } catch {
      return try check(refusal: error)
    }
    let hello = try Hello(body: body)
    let (welcome, offer) = (agreement.welcome, handshake.offer)
    let shortest = min(hello.keepalive &- 1, offer.keepalive &- 1) &+ 1
    guard Limits.versions.contains(welcome.version), hello.versions.contains(welcome.version),
      welcome.features == offer.features & hello.features,
      welcome.keepalive == (shortest == 0 ? 0 : max(shortest, 100)),
      agreement.clientMaximumFrame >= Limits.smallestFrame,
      agreement.clientMaximumFrame <= Int(hello.maximumFrame),
      agreement.clientName.utf8.count <= Int(Limits.name), hello.name.hasPrefix(agreement.clientName)
    else { throw ProbeViolation("\(hello) is welcomed with \(agreement)") }
    let answer = Array(welcome.encoded(stream: 0)[FrameHeader.size...])
    let taken = try answer.withUnsafeBytes { answer in
      try ClientHandshake(hello: hello).receive(
        FrameHeader(length: UInt32(answer.count), type: .welcome, stream: 0), answer)
    }
    guard taken == welcome else { throw ProbeViolation("\(welcome) is taken for \(taken)") }
  }

  private static func answer(
    _ handshake: ClientHandshake, _ header: FrameHeader, _ body: UnsafeRawBufferPointer
  ) throws {
    let welcome: Welcome
    do {
      welcome = try handshake.receive(header, body)
    } catch {
      // A broker may reject with any code.
      if header.type != .error { try check(refusal: error) }
      return
    }
    guard header.stream == 0, handshake.hello.versions.contains(welcome.version),
      welcome.features & ~handshake.hello.features == 0, welcome.maximumFrame >= Limits.smallestFrame,
      welcome.maximumStreams > 0
    else { throw ProbeViolation("\(welcome) is taken") }
  }

  private static func check(refusal error: WireError) throws {
    guard error.code.endsConnection || error.code == .unsupported else {
      throw ProbeViolation("the handshake is refused with \(error)")
    }
  }
}
