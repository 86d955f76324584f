import EngineTestSupport
import Glibc
import SluiceNATS
import Synchronization
import TestSupport
import Testing

/// Tests with a single real server.
@Suite(
  "One real nats-server",
  .enabled(
    if: EngineProcess.program != nil, "nats-server isn't installed: scripts/nats-server.sh installs it"))
struct EngineTests {
  private static func stream(_ name: String, _ change: (inout StreamConfiguration) -> Void = { _ in })
    -> StreamConfiguration
  {
    var stream = StreamConfiguration(name, subjects: ["\(name.lowercased()).>"])
    stream.allowsAtomicBatches = true
    stream.allowsDirectReads = true
    stream.allowsRollUp = true
    stream.duplicateWindow = 60_000_000_000
    change(&stream)
    return stream
  }

  private static func open(_ change: (inout StreamConfiguration) -> Void = { _ in }) throws -> (
    EngineProcess, RealClient
  ) {
    let engine = try EngineProcess()
    try engine.start()
    let client = try RealClient([engine]).open()
    let stream = stream("S", change)
    let info = try client.get { try $0.createStream(stream, $1) }
    #expect(info.configuration == stream)
    return (engine, client)
  }

  @Test("streams are created, changed, described, purged and deleted")
  func streams() throws {
    let (_, client) = try Self.open()
    let stream = Self.stream("S")
    // Repeating the same settings is no conflict; other settings are.
    _ = try client.get { try $0.createStream(stream, $1) }
    var other = stream
    other.maximumPerSubject = 5
    let changed = other
    let conflict = try client.result { try $0.createStream(changed, $1) }
    #expect(throws: NATSError.self) { try conflict.get() }
    if case .failure(let error) = conflict { #expect(error.code == .streamExists) }
    #expect(try client.get { try $0.updateStream(changed, $1) }.configuration == changed)
    for number in 1...6 {
      #expect(
        try client.get { try $0.publish(message("s.\(number % 2)"), to: "S", $1) }.sequence == UInt64(number))
    }
    #expect(try client.get { try $0.purge("S", matching: "s.0", before: 4, $1) } == 1)
    #expect(try client.get { try $0.purge("S", before: 4, $1) } == 2)
    let state = try client.get { try $0.streamInfo("S", $1) }.state
    #expect(state.messages == 3)
    #expect(state.firstSequence == 4)
    #expect(state.lastSequence == 6)
    let account = try client.get { try $0.accountInfo($1) }
    #expect(account.streams == 1)
    try client.get { try $0.deleteStream("S", $1) }
    let missing = try client.result { try $0.streamInfo("S", $1) }
    #expect(throws: NATSError.self) { try missing.get() }
    if case .failure(let error) = missing {
      #expect(error.code == .streamNotFound)
      #expect(error.stream == "S")
      #expect(error.engineCode == 10059)
      #expect(error.description.contains("stream S, server n1"))
    }
  }

  @Test("a batch is stored as a whole, in order, and only on the expected sequence")
  func batches() throws {
    let (_, client) = try Self.open()
    let first = try client.get { api, done in
      try api.commit(
        [
          message("s.a", "1") { $0.expectLastSequence(0) }, message("s.b", "2") { $0.rollUp(.subject) },
          message("s.c", "3"),
        ], to: "S", done)
    }
    #expect(first == PublishAcknowledgement(stream: "S", sequence: 3, count: 3))
    let stale = try client.result { api, done in
      try api.commit([message("s.a", "x") { $0.expectLastSequence(0) }, message("s.b", "y")], to: "S", done)
    }
    guard case .failure(let error) = stale else {
      Issue.record("a stale batch was stored")
      return
    }
    #expect(error.code == .wrongLastSequence)
    #expect(error.lastSequence == 3)
    #expect(error.provesNothingWasStored)
    #expect(try client.get { try $0.streamInfo("S", $1) }.state.lastSequence == 3)
    // A single message is a valid batch, and an empty payload is valid.
    let single = try client.get { api, done in
      try api.commit([message("s.a") { $0.expectLastSequence(3) }], to: "S", done)
    }
    #expect(single == PublishAcknowledgement(stream: "S", sequence: 4))
    for count in [0, 1_001] {
      let refused = try client.result { api, done in
        try api.commit(Array(repeating: message("s.a"), count: count), to: "S", done)
      }
      #expect(throws: NATSError.self) { try refused.get() }
    }
    let largest = try client.get { api, done in
      try api.commit(Array(repeating: message("s.a"), count: 1_000), to: "S", done)
    }
    #expect(largest.sequence == 1_004)
    #expect(largest.count == 1_000)
  }

  @Test(
    "commits under way at once are stored in order, and one with a wrong sequence takes those that rely on it with it"
  )
  func pipeline() throws {
    let (_, client) = try Self.open()
    let results = Mutex<[Int: Result<PublishAcknowledgement, NATSError>]>([:])
    let shared = SharedMutex(results)
    client.perform { client in
      var api = JetStream(client)
      api.timeout = .seconds(60)
      for number in 0..<40 {
        // The commit with number 20 ignores the others.
        let expected = number == 20 ? 0 : UInt64(2 * number)
        try! api.commit(
          [message("s.a", "\(number)") { $0.expectLastSequence(expected) }, message("s.b", "\(number)")],
          to: "S"
        ) { result in shared.mutex.withLock { $0[number] = result } }
      }
    }
    try eventually("all outcomes", every: 0.001) { shared.mutex.withLock { $0.count == 40 } }
    let outcomes = shared.mutex.withLock { $0 }
    for number in 0..<20 { #expect(try outcomes[number]!.get().sequence == UInt64(2 * number + 2)) }
    for number in 20..<40 {
      guard case .failure(let error) = outcomes[number]! else {
        Issue.record("commit \(number) was stored")
        continue
      }
      #expect(error.code == .wrongLastSequence)
    }
    #expect(try client.get { try $0.streamInfo("S", $1) }.state.lastSequence == 40)
  }

  @Test("expected sequences of subjects, ids and times to live")
  func headers() throws {
    let (_, client) = try Self.open { $0.allowsTimeToLive = true }
    func publish(_ message: NATSMessage) throws -> String {
      switch try client.result({ try $0.publish(message, to: "S", $1) }) {
      case .success(let acknowledgement):
        return "\(acknowledgement.sequence)\(acknowledgement.isDuplicate ? " again" : "")"
      case .failure(let error): return "\(error.code)"
      }
    }
    #expect(try publish(message("s.a") { try $0.expectLastSequenceOfSubject(0) }) == "1")
    #expect(try publish(message("s.a") { try $0.expectLastSequenceOfSubject(0) }) == "wrong-last-sequence")
    #expect(try publish(message("s.a") { try $0.expectLastSequenceOfSubject(1) }) == "2")
    #expect(
      try publish(message("s.c.d") { try $0.expectLastSequenceOfSubject(0, matching: "s.c.*") }) == "3")
    #expect(try publish(message("s.b") { try $0.setMessageID("id") }) == "4")
    #expect(try publish(message("s.b") { try $0.setMessageID("id") }) == "4 again")
    #expect(try publish(message("s.b") { try $0.expectStream("OTHER") }) == "invalid-request")
    #expect(try publish(message("s.e") { $0.setTimeToLive(.milliseconds(1)) }) == "5")
    #expect(try publish(message("elsewhere")) == "no-responders")
    try eventually("the message's end") {
      try client.get { try $0.streamInfo("S", $1) }.state.messages == 4
    }
  }

  @Test("messages are read by sequence, by subject, in pages, and from the leader")
  func reads() throws {
    let (_, client) = try Self.open()
    for number in 1...10 {
      _ = try client.get {
        try $0.publish(message("s.\(number % 3)", "\(number)") { try $0.add("N", "\(number)") }, to: "S", $1)
      }
    }
    func read(_ selector: MessageSelector) throws -> String {
      let direct: Result<StoredMessage, NATSError> = try client.result { api, done in
        try api.message(selector, of: "S") { done($0.map { StoredMessage($0) }) }
      }
      let leader = try client.result { try $0.leaderMessage(selector, of: "S", $1) }
      switch (direct, leader) {
      case (.success(let one), .success(let other)):
        #expect((one.subject, one.sequence, one.payload) == (other.subject, other.sequence, other.payload))
        #expect(one.headers["N"] == other.headers["N"])
        #expect(one.headers["N"] == String(decoding: one.payload, as: UTF8.self))
        return "\(one.sequence) \(one.subject)"
      case (.failure(let one), .failure(let other)):
        #expect(one.code == other.code)
        return "\(one.code)"
      default: return "\(direct), but \(leader)"
      }
    }
    #expect(try read(.sequence(3)) == "3 s.0")
    #expect(try read(.sequence(11)) == "message-not-found")
    #expect(try read(.last(subject: "s.0")) == "9 s.0")
    #expect(try read(.last(subject: "s.9")) == "message-not-found")
    #expect(try read(.next(pattern: "s.0", from: 4)) == "6 s.0")

    func page(
      _ begin:
        @escaping @Sendable (
          JetStream, @escaping (StoredMessageView) -> Void, @escaping JetStream.Completion<ReadPage>
        ) throws -> Void
    ) throws -> (sequences: [UInt64], page: ReadPage) {
      let sequences = SharedMutex(Mutex<[UInt64]>([]))
      let page = try client.get { api, done in
        try begin(api, { message in sequences.mutex.withLock { $0.append(message.sequence) } }, done)
      }
      return (sequences.mutex.withLock { $0 }, page)
    }
    let first = try page { try $0.messages(of: "S", matching: "s.*", from: 0, count: 4, each: $1, $2) }
    #expect(first.sequences == [1, 2, 3, 4])
    #expect(first.page == ReadPage(lastSequence: 4, pending: 6, upTo: nil))
    let filtered = try page { try $0.messages(of: "S", matching: "s.0", from: 4, count: 40, each: $1, $2) }
    #expect(filtered.sequences == [6, 9])
    #expect(filtered.page.pending == 0)
    let none = try page { try $0.messages(of: "S", matching: "s.0", from: 40, count: 40, each: $1, $2) }
    #expect(none.page == ReadPage(lastSequence: 0, pending: 0, upTo: nil))
    let bounded = try page {
      try $0.messages(of: "S", matching: ">", from: 1, count: 40, maximumBytes: 1, each: $1, $2)
    }
    #expect(bounded.sequences == [1])
    let last = try page { try $0.lastMessages(of: "S", matching: ["s.*"], each: $1, $2) }
    #expect(last.sequences == [8, 9, 10])
    #expect(last.page.upTo == 10)
    let earlier = try page { try $0.lastMessages(of: "S", matching: ["s.1", "s.2"], upTo: 6, each: $1, $2) }
    #expect(earlier.sequences == [4, 5])
    let some = try page { try $0.lastMessages(of: "S", matching: ["s.*"], count: 2, each: $1, $2) }
    #expect(some.sequences == [8, 9])
    let rest = try page { [upTo = some.page.upTo] api, each, done in
      try api.lastMessages(of: "S", matching: ["s.*"], upTo: upTo, from: 10, each: each, done)
    }
    #expect(rest.sequences == [10])
  }

  @Test(
    "more subjects than one answer may have are an error of their own, and pages by sequence have them all")
  func manySubjects() throws {
    let (_, client) = try Self.open()
    let count = JetStream.maximumSubjects + 76
    for start in stride(from: 0, to: count, by: 500) {
      let batch = (start..<min(start + 500, count)).map { message("s.\($0)", "x") }
      _ = try client.get { try $0.commit(batch, to: "S", $1) }
    }
    let refused = try client.result {
      try $0.lastMessages(of: "S", matching: ["s.*"], count: 10, each: { _ in }, $1)
    }
    guard case .failure(let error) = refused else {
      Issue.record("too many subjects were read")
      return
    }
    #expect(error.code == .tooManySubjects)
    var next: UInt64 = 1
    var found = 0
    while true {
      let start = next
      let page = try client.get {
        try $0.messages(of: "S", matching: "s.*", from: start, count: 500, each: { _ in }, $1)
      }
      found += page.pending == 0 ? Int(page.lastSequence - start + 1) : 500
      next = page.lastSequence + 1
      if page.pending == 0 { break }
    }
    #expect(found == count)
  }

  @Test("a watch has what there is, what changes, what ends, and begins anew after the engine was away")
  func watch() throws {
    let engine = try EngineProcess()
    try engine.start()
    let client = try RealClient([engine]).open()
    let stream = Self.stream("C") {
      $0.allowsTimeToLive = true
      $0.deleteMarkerTimeToLive = 3_600_000_000_000
      $0.maximumPerSubject = 1
    }
    _ = try client.get { try $0.createStream(stream, $1) }
    func put(_ subject: String, _ payload: String, ttl: Bool = false) throws {
      _ = try client.retry {
        try $0.publish(
          message(subject, payload) { if ttl { $0.setTimeToLive(.seconds(1)) } }, to: "C", $1)
      }
    }
    try put("c.a", "1")
    try put("c.b", "1")
    let notes = SharedMutex(Mutex<[String]>([]))
    let holder = SharedMutex(Mutex<WatchHolder>(WatchHolder()))
    client.perform { client in
      let watch = try! JetStream(client).watch("C", matching: ["c.>"], heartbeat: .milliseconds(200)) {
        event in
        let note =
          switch event {
          case .began: "began"
          case .current: "current"
          case .interrupted: "interrupted"
          case .message(let message):
            message.subject.text + " " + (message.removal ?? message.payload.text)
          }
        notes.mutex.withLock { $0.append(note) }
      }
      holder.mutex.withLock { $0.watch = watch }
    }
    func expect(_ expected: [String]) throws {
      try eventually("\(expected), not \(notes.mutex.withLock { $0 })") {
        notes.mutex.withLock { $0 } == expected
      }
      notes.mutex.withLock { $0 = [] }
    }
    try expect(["began", "c.a 1", "c.b 1", "current"])
    try put("c.a", "2")
    try put("c.t", "1", ttl: true)
    try expect(["c.a 2", "c.t 1", "c.t MaxAge"])
    engine.kill()
    try expect(["interrupted"])
    try engine.start()
    try eventually("the watch: \(notes.mutex.withLock { $0 })") {
      notes.mutex.withLock { $0.last } == "current"
    }
    // There may be attempts between them that were too early.
    let all = notes.mutex.withLock { $0 }
    #expect(all.suffix(5) == ["began", "c.b 1", "c.a 2", "c.t MaxAge", "current"])
    client.perform { _ in
      let watch = holder.mutex.withLock { $0.watch.take() }
      watch?.stop()
    }
    try put("c.a", "3")
    try put("c.a", "4")
    #expect(notes.mutex.withLock { $0 } == all)
  }

  @Test("a server that would lose data is found out, if the account may ask")
  func syncs() throws {
    for (sync, objections) in [("sync_interval: always", 0), ("sync_interval: 30s", 1)] {
      let engine = try EngineProcess(settings: EngineCluster.accounts, jetStream: sync)
      try engine.start()
      for user in ["app", "system"] {
        let client = try RealClient([engine]) {
          $0.credentials = .fixed(.password(user: user, password: "secret"))
        }.open()
        let servers = try client.get { try $0.servers(expecting: ["n1"], $1) }
        #expect(servers.map(\.name) == ["n1"])
        #expect(servers[0].version == "2.15.1")
        #expect(servers[0].objections().count == objections)
        #expect(servers[0].objections(minimumVersion: "2.16.0").count == objections + 1)
        #expect(servers[0].objections(minimumVersion: "2.15.1-rc.1").count == objections)
        let missing = try client.result {
          try $0.servers(expecting: ["n1", "n2"], patience: .milliseconds(100), $1)
        }
        #expect(throws: NATSError.self) { try missing.get() }
        if case .failure(let error) = missing { #expect(error.description.contains(": n2;")) }
      }
    }
    let engine = try EngineProcess()
    try engine.start()
    let client = try RealClient([engine]).open()
    let refused = try client.result { try $0.servers($1) }
    if case .failure(let error) = refused { #expect(error.code == .permissionDenied) }
    #expect(throws: NATSError.self) { try refused.get() }
  }
}

/// A mutex shared by closures.
final class SharedMutex<Value: Sendable>: Sendable {
  let mutex: Mutex<Value>

  init(_ mutex: consuming Mutex<Value>) {
    self.mutex = mutex
  }
}

/// Unchecked: the watch is used only on its loop.
struct WatchHolder: @unchecked Sendable {
  var watch: JetStreamWatch?
}
