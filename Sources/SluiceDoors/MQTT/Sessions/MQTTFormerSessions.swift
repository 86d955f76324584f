import SluiceWire

/// Reads the sessions that earlier versions of a broker of one node have stored in `mqtt.sessions`, as records of a roster.
///
/// Their records stand before those of rosters. Each has a session as a whole, or nothing if the session has ended:
///
/// ```
///  +-----------+------------------------------+
///  | u64       | MQTTKeptSession; nothing     |
///  | process   | if the session has ended     |
///  +-----------+------------------------------+
/// ```
///
/// They become the records of one process, which the first process of this version ends: it says hello at the same node.
struct MQTTFormerSessions {
  /// No process of a roster has that number.
  private static let process: UInt64 = 0
  /// All connections of the process: of each session one at a time.
  private static let number: UInt64 = 0

  private var serial: UInt64 = 0
  /// The sessions with connections.
  private var held: Set<MQTTHub.Key> = []

  /// The records that do to a roster what a former record says; none for what no broker has written.
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
