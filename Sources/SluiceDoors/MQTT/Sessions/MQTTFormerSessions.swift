import SluiceWire

/// Reads sessions that earlier versions of a single-node broker have stored in `mqtt.sessions`, and converts them to records of a roster.
///
/// These records precede those of rosters. Each contains a whole session, or nothing if the session has ended:
///
/// ```
///  +-----------+------------------------------+
///  | u64       | MQTTKeptSession; nothing     |
///  | process   | if the session has ended     |
///  +-----------+------------------------------+
/// ```
///
/// They become records of one process. The first process of this version ends it by its hello at the same node.
struct MQTTFormerSessions {
  /// No process of a roster has this number.
  private static let process: UInt64 = 0
  /// The claim number of all connections of the process, of which each session has one at a time.
  private static let number: UInt64 = 0

  private var serial: UInt64 = 0
  /// The sessions with connections.
  private var held: Set<MQTTHub.Key> = []

  /// Converts a former record to records with the same effect on a roster; returns none for malformed bytes.
  mutating func records(of key: MQTTHub.Key, _ value: UnsafeRawBufferPointer) -> [MQTTRosterRecord] {
    var reader = unsafe ByteReader(value)
    guard (try? reader.integer("process", as: UInt64.self)) != nil else { return [] }
    var session: MQTTKeptSession?
    if reader.count > 0 {
      session = unsafe try? MQTTKeptSession(decoding: Array(reader.remaining))
      if session == nil { return [] }
    }
    var kinds: [MQTTRosterRecord.Kind] = []
    if serial == 0 { kinds.append(.hello(node: "", time: 0)) }
    if !held.contains(key) { kinds.append(.claim(number: Self.number, isClean: session == nil)) }
    if let session, session.leftAt == nil {
      held.insert(key)
      kinds.append(.state(number: Self.number, MQTTRosterState(session)))
    } else {
      held.remove(key)
      kinds.append(
        .release(
          number: Self.number, MQTTRosterState(session), time: session?.leftAt ?? 0, mourns: false))
    }
    return kinds.map { kind in
      serial += 1
      return MQTTRosterRecord(process: Self.process, serial: serial, kind: kind)
    }
  }
}
