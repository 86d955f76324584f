import EngineTestSupport
import SluiceNATS
import Synchronization
import TestSupport

/// A request to an engine, and its reply as text, which real servers and the model must agree on.
struct Exchange: Sendable {
  let name: String
  let answer: @Sendable (any SteppedClient) throws -> String
}

extension Exchange {
  private static func text<Value>(_ result: Result<Value, NATSError>, _ show: (Value) -> String) -> String {
    switch result {
    case .success(let value): show(value)
    case .failure(let error):
      "\(error.code)\(error.engineCode.map { " \($0)" } ?? "")\(error.lastSequence.map { ", last \($0)" } ?? "")"
    }
  }

  private static func text(_ message: StoredMessage) -> String {
    let own = message.headers["N"].map { " N=\($0)" } ?? ""
    return "\(message.sequence) \(message.subject)\(own) \(String(decoding: message.payload, as: UTF8.self))"
  }

  static func commit(_ name: String, _ messages: [NATSMessage]) -> Exchange {
    Exchange(name: name) { client in
      text(try client.result { try $0.commit(messages, to: "S", $1) }) {
        "\($0.stream) \($0.sequence)\($0.isDuplicate ? " again" : "") of \($0.count)"
      }
    }
  }

  static func create(_ name: String, _ configuration: StreamConfiguration) -> Exchange {
    Exchange(name: name) { client in
      text(try client.result { try $0.createStream(configuration, $1) }) { "\($0.configuration)" }
    }
  }

  static func update(_ name: String, _ configuration: StreamConfiguration) -> Exchange {
    Exchange(name: name) { client in
      text(try client.result { try $0.updateStream(configuration, $1) }) { "\($0.configuration)" }
    }
  }

  static func state(_ stream: String = "S") -> Exchange {
    Exchange(name: "the state of \(stream)") { client in
      text(try client.result { try $0.streamInfo(stream, $1) }) {
        "\($0.state.messages) messages from \($0.state.firstSequence) to \($0.state.lastSequence)"
      }
    }
  }

  static func purge(_ name: String, _ pattern: String?, before sequence: UInt64?) -> Exchange {
    Exchange(name: name) { client in
      text(try client.result { try $0.purge("S", matching: pattern, before: sequence, $1) }) { "\($0)" }
    }
  }

  static func delete(_ stream: String) -> Exchange {
    Exchange(name: "\(stream) is deleted") { client in
      text(try client.result { try $0.deleteStream(stream, $1) }) { "deleted" }
    }
  }

  /// Reads one message, from a replica and from the leader.
  static func read(_ selector: MessageSelector) -> Exchange {
    Exchange(name: "a read of \(selector)") { client in
      let direct: Result<StoredMessage, NATSError> = try client.result { api, done in
        try api.message(selector, of: "S") { done($0.map { StoredMessage($0) }) }
      }
      let leader = try client.result { try $0.leaderMessage(selector, of: "S", $1) }
      return "\(text(direct, text)); leader: \(text(leader, text))"
    }
  }

  /// Reads several messages.
  static func page(
    _ name: String,
    _ begin:
      @escaping @Sendable (
        JetStream, @escaping (StoredMessageView) -> Void, @escaping JetStream.Completion<ReadPage>
      ) throws -> Void
  ) -> Exchange {
    Exchange(name: name) { client in
      let sequences = SharedMutex(Mutex<[UInt64]>([]))
      let result = try client.result { api, done in
        try begin(api, { message in sequences.mutex.withLock { $0.append(message.sequence) } }, done)
      }
      let read = sequences.mutex.withLock { $0 }
      let shown = read.count > 20 ? "\(read.count) messages" : "\(read)"
      return "\(shown) "
        + text(result) { "\($0.lastSequence) pending \($0.pending) up to \($0.upTo ?? 0)" }
    }
  }

  // MARK: The table

  static let configuration: StreamConfiguration = {
    var stream = StreamConfiguration("S", subjects: ["s.>"])
    stream.allowsAtomicBatches = true
    stream.allowsDirectReads = true
    stream.allowsRollUp = true
    stream.allowsTimeToLive = true
    stream.duplicateWindow = 60_000_000_000
    return stream
  }()

  private static func changed(_ change: (inout StreamConfiguration) -> Void) -> StreamConfiguration {
    var stream = configuration
    change(&stream)
    return stream
  }

  private static func numbered(_ number: Int) -> NATSMessage {
    message("s.\(number % 3)", "\(number)") { try $0.add("N", "\(number)") }
  }

  /// Played in order on an engine without streams.
  static let table: [Exchange] = [
    .state(),
    .create("a stream is created", configuration),
    .create("the same again", configuration),
    .create("the same with other settings", changed { $0.maximumPerSubject = 3 }),
    .create("another one with the same subjects", changed { $0.name = "T" }),
    .state(),
    .read(.sequence(1)),
    .page("a page of nothing") { try $0.messages(of: "S", matching: ">", from: 1, count: 9, each: $1, $2) },
    .page("last messages of nothing") { try $0.lastMessages(of: "S", matching: [">"], each: $1, $2) },
    .commit(
      "a batch",
      [
        message("s.a", "1") { $0.expectLastSequence(0) }, message("s.b", "2") { $0.rollUp(.subject) },
        message("s.c", "3"),
      ]),
    .commit("a stale batch", [message("s.a", "x") { $0.expectLastSequence(0) }, message("s.b", "y")]),
    .commit("a stale message", [message("s.a", "x") { $0.expectLastSequence(2) }]),
    .commit(
      "a batch from the future", [message("s.a", "x") { $0.expectLastSequence(9) }, message("s.b", "y")]),
    .commit("the next message", [message("s.a") { $0.expectLastSequence(3) }]),
    .commit("a subject's last", [message("s.a", "5") { try $0.expectLastSequenceOfSubject(4) }]),
    .commit("a subject's former last", [message("s.a", "x") { try $0.expectLastSequenceOfSubject(4) }]),
    .commit("a subject's first", [message("s.n", "6") { try $0.expectLastSequenceOfSubject(0) }]),
    .commit("a subject's first again", [message("s.n", "x") { try $0.expectLastSequenceOfSubject(0) }]),
    .commit(
      "the last of a pattern",
      [message("s.p.q", "7") { try $0.expectLastSequenceOfSubject(0, matching: "s.p.*") }]),
    .commit(
      "the former last of a pattern",
      [message("s.p.r", "x") { try $0.expectLastSequenceOfSubject(0, matching: "s.p.*") }]),
    .commit("an id", [message("s.i", "8") { try $0.setMessageID("one") }]),
    .commit("the same id", [message("s.i", "8") { try $0.setMessageID("one") }]),
    .commit(
      "the same id with a wrong expectation",
      [
        message("s.i", "8") {
          try $0.setMessageID("one")
          $0.expectLastSequence(1)
        }
      ]),
    .commit("another stream's", [message("s.a") { try $0.expectStream("T") }]),
    .commit("no stream's", [message("elsewhere")]),
    .commit("two of one subject", [message("s.a", "9"), message("s.a", "10") { $0.rollUp(.subject) }]),
    .state(),
    .read(.last(subject: "s.a")),
    .read(.last(subject: "s.z")),
    .read(.sequence(2)),
    .read(.sequence(99)),
    .read(.next(pattern: "s.*", from: 4)),
    .read(.next(pattern: "s.p.>", from: 1)),
    .purge("a purge of a subject", "s.c", before: nil),
    .purge("a purge of nothing", "s.c", before: nil),
    .purge("a purge of the rest", nil, before: 11),
    .state(),
    .read(.sequence(10)),
    .commit("ten messages", (1...10).map(numbered)),
    .read(.sequence(13)),
    .page("a page") { try $0.messages(of: "S", matching: "s.*", from: 11, count: 4, each: $1, $2) },
    .page("a filtered page") { try $0.messages(of: "S", matching: "s.0", from: 14, count: 40, each: $1, $2) },
    .page("a page behind the end") {
      try $0.messages(of: "S", matching: "s.0", from: 40, count: 40, each: $1, $2)
    },
    .page("a small page") {
      try $0.messages(of: "S", matching: ">", from: 1, count: 40, maximumBytes: 1, each: $1, $2)
    },
    .page("last messages") { try $0.lastMessages(of: "S", matching: ["s.*"], each: $1, $2) },
    .page("earlier last messages") {
      try $0.lastMessages(of: "S", matching: ["s.1", "s.2"], upTo: 16, each: $1, $2)
    },
    .page("two last messages") { try $0.lastMessages(of: "S", matching: ["s.*"], count: 2, each: $1, $2) },
    .page("the other last messages") {
      try $0.lastMessages(of: "S", matching: ["s.*"], upTo: 21, from: 21, each: $1, $2)
    },
    .page("last messages of no subject") { try $0.lastMessages(of: "S", matching: ["t.*"], each: $1, $2) },
    .update("one message a subject", changed { $0.maximumPerSubject = 1 }),
    .state(),
    .update("no batches", changed { $0.allowsAtomicBatches = false }),
    .commit("a batch where there are none", [message("s.a"), message("s.b")]),
    .update(
      "no roll-up and no times to live",
      changed {
        $0.allowsRollUp = false; $0.allowsTimeToLive = true
      }),
    .commit("a roll-up where there is none", [message("s.a") { $0.rollUp(.subject) }]),
    .update(
      "a limit",
      changed {
        $0.maximumBytes = 2_000; $0.discard = .new
      }),
    .commit("more than there is room for", [message("s.a", String(repeating: "x", count: 3_000))]),
    .update("no limit", configuration),
    .commit("many subjects, first part", (0..<1_000).map { message("s.many.\($0)", "x") }),
    .commit("many subjects, second part", (1_000..<1_100).map { message("s.many.\($0)", "x") }),
    .page("too many subjects") {
      try $0.lastMessages(of: "S", matching: ["s.many.*"], count: 10, each: $1, $2)
    },
    .page("too many subjects by sequence") {
      try $0.messages(of: "S", matching: "s.many.*", from: 1, count: 2_000, each: $1, $2)
    },
    .commit("a roll-up of all", [message("s.a", "alone") { $0.rollUp(.stream) }]),
    .state(),
    .delete("S"),
    .delete("S"),
    .state(),
    .commit("a message without a stream", [message("s.a")]),
  ]
}
