import SluiceWire

extension WireProbe {
  /// A frame of every type that contains names sent by clients, with names that differ from each other and from everything else in the frame.
  public static let namedFrames: [any Frame] = [
    Subscribe(topic: "first.name", start: .earliest, grantedThrough: 1, cursor: "second.name"),
    SubscribePattern(
      pattern: "first.name", start: .earliest, grantedThrough: 1,
      positions: [TopicPosition(topic: "second.name", epoch: 1, nextOffset: 1)]),
    Positions([TopicPosition(topic: "first.name", epoch: 1, nextOffset: 1)], more: false),
    PublishOpen(topic: "first.name", acknowledgement: .received),
    JoinGroup(
      topic: "first.name", group: "second.name", start: .earliest,
      settings: JoinGroup.Settings(acknowledgement: .explicit, deliveries: 1, deadLetters: "third.name"),
      grantedThrough: 1),
    TopicCreate(topic: "first.name", settings: TopicSettings()), TopicShow(topic: "first.name"),
    TopicDelete(topic: "first.name"),
    TopicConnect(topic: "first.name"), TopicDisconnect(topic: "first.name"),
    CursorList(topic: "first.name", limit: 1),
    CursorMove(topic: "first.name", name: "second.name", to: .earliest),
    CursorDelete(topic: "first.name", name: "second.name"),
    TopicSet(topic: "first.name", settings: TopicSettings()), TopicTrim(topic: "first.name", .newest(1)),
    StateList(topic: "first.name", kind: .producer),
    StateRestore(topic: "first.name", kind: .group, origin: 0, states: []),
    ClusterDrain(node: "first-name", wanted: true), ClusterMove(shard: 1, node: "first-name"),
  ]

  /// Copies of the frame, one for each of its names, in which that name is replaced by an invalid one of the same length.
  public static func misnamed(_ frame: any Frame, stream: UInt32) -> [[UInt8]] {
    let bytes = frame.encoded(stream: stream)
    return frame.names.map { name in
      let text = Array(name.text.utf8)
      let place = (0...bytes.count - text.count).first { bytes[$0..<$0 + text.count].elementsEqual(text) }
      guard let place else { preconditionFailure("\(name.text) isn't in the bytes of \(frame)") }
      var misnamed = bytes
      misnamed.replaceSubrange(place..<place + text.count, with: repeatElement(0x20, count: text.count))
      return misnamed
    }
  }
}
