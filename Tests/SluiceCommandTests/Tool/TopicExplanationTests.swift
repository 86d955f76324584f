import SluiceCommand
import SluiceWire
import Testing

@Suite("Who limits whom on a topic, in sentences")
struct TopicExplanationTests {
  private func sentences(_ change: (inout TopicInfo) -> Void) -> [String] {
    var info = TopicInfo(
      summary: TopicSummary(
        topic: "jobs", epoch: 1, firstOffset: 100, nextOffset: 200, bytes: 5, ending: nil, subscriptions: 0,
        publications: 0, storage: .memory),
      settings: TopicSettings(), subscriptions: [], publications: [])
    change(&info)
    info.summary.subscriptions = UInt32(info.subscriptions.count)
    info.summary.publications = UInt32(info.publications.count)
    return TopicExplanation(info).sentences
  }

  private func producer(
    _ client: String = "source", granted: UInt64 = 250, waiting: UInt64 = 0,
    _ reason: TopicInfo.Publication.WaitReason = .none
  ) -> TopicInfo.Publication {
    .init(
      connection: 1, client: client, stream: 1, granted: granted, received: 200, waiting: waiting,
      reason: reason)
  }

  private func subscriber(
    _ client: String, next: UInt64 = 200, granted: UInt64, holding: UInt64 = 0,
    _ limit: TopicInfo.HoldLimit = .none
  ) -> TopicInfo.Subscription {
    .init(
      connection: 3, client: client, stream: 1, state: .live, nextOffset: next, granted: granted, sent: 100,
      holding: holding, limit: limit, lastMinute: 930, lastFiveMinutes: 710)
  }

  @Test("A slow consumer that holds up a producer is named first, with its limit and for how long")
  func slowConsumer() {
    #expect(
      sentences {
        $0.publications = [producer(granted: 200, waiting: 12_300, .subscribers)]
        $0.subscriptions = [
          subscriber("quick", granted: TopicSettings.unlimited),
          subscriber("slow", granted: 100, holding: 12_000, .demand),
        ]
        $0.holds = [.init(reason: .subscribers, milliseconds: 12_000, lastMinute: 930, lastFiveMinutes: 710)]
      } == [
        "1 producer of jobs is blocked by subscriber slow (connection 3), which has requested nothing for 12 s (blocked 93 % of the last minute, 71 % of the last five).",
        "Producer source (connection 1) has published 200 records and has been blocked for 12 s: the subscribers have requested nothing more.",
        "Subscriber slow (connection 3) has every record and has requested no more: the producers are blocked until it does.",
        "Subscriber quick (connection 3) has every record and unlimited demand.",
      ])
  }

  @Test("Why a subscriber is behind, and since when")
  func slowness() {
    func told(_ slowness: TopicInfo.Slowness, granted: UInt64 = 120) -> String {
      sentences {
        $0.publications = [producer()]
        var slow = subscriber("far", next: 150, granted: granted)
        (slow.slowness, slow.slow, slow.age) = (slowness, 12_000, 65_000)
        $0.subscriptions = [slow]
      }.last ?? ""
    }
    let behind = "Subscriber far (connection 3) is 50 records behind, for 1 min 5 s and"
    #expect(told(.demand, granted: 100) == "\(behind) has requested none of them for 12 s: it limits itself.")
    let asked = "\(behind) has requested 20 of them:"
    #expect(told(.client) == "\(asked) the client hasn't read what it was sent for 12 s.")
    #expect(told(.network) == "\(asked) its network hasn't acknowledged what was sent for 12 s.")
    #expect(
      told(.unread)
        == "\(asked) it hasn't received what it was sent for 12 s, because the client or its network is slow."
    )
    #expect(told(.pace) == "\(asked) they are on their way, or it reads more slowly than records come.")
    // It requests nothing because of the records that it was sent before.
    #expect(told(.client, granted: 100).contains("has requested no more: the client hasn't read"))
  }

  @Test("A subscriber that is behind limits itself, or is limited by its network")
  func behind() {
    let told = sentences {
      $0.publications = [producer()]
      $0.subscriptions = [
        subscriber("idle", next: 160, granted: 100), subscriber("far", next: 150, granted: 120),
        subscriber("waits", granted: 108),
      ]
    }
    #expect(
      told == [
        "No producer of jobs is blocked.",
        "Producer source (connection 1) has published 200 records and may publish 50 more.",
        "Subscriber far (connection 3) is 50 records behind and has requested 20 of them: they are on their way, or the client or its network is slow.",
        "Subscriber idle (connection 3) is 40 records behind and has requested none of them: it limits itself.",
        "Subscriber waits (connection 3) has every record and has requested 8 more: it waits for the producers.",
      ])
  }

  @Test(
    "What isn't a subscriber's doing names its cause",
    arguments: [
      (
        TopicInfo.Publication.WaitReason.storageFull, "the broker's store is full",
        " Delete or trim topics, or raise --storage-limit."
      ),
      (.storageBacklog, "records wait to be written to the broker's disk", ""),
      (
        .memory, "the broker's memory is at its ceiling",
        " Delete or trim topics in memory, or raise --memory."
      ), (.notConnected, "the topic isn't connected", ""),
      (.init(rawValue: 99), "reason 99, which this version doesn't know", ""),
    ])
  func causes(_ reason: TopicInfo.Publication.WaitReason, _ words: String, _ remedy: String) {
    let told = sentences {
      $0.publications = [producer(granted: 200, waiting: 1500, reason)]
      $0.holds = [.init(reason: reason, milliseconds: 1500, lastMinute: 25, lastFiveMinutes: 5)]
    }
    #expect(
      told[0]
        == "1 producer of jobs is blocked for 1 s: \(words) (blocked 2 % of the last minute, 0.5 % of the last five).\(remedy)"
    )
  }

  @Test("Producers that the store has refused wait for the store")
  func refusedByTheStore() {
    #expect(
      sentences {
        $0.publications = [producer(granted: 200, waiting: 12_300, .storageFull)]
      }.first
        == "1 producer of jobs is blocked for 12 s: the broker's store is full. Delete or trim topics, or raise --storage-limit."
    )
  }

  @Test("A limit that comes and goes is told while no producer waits, as topic show does")
  func limitThatComesAndGoes() {
    #expect(
      sentences {
        $0.publications = [producer()]
        $0.subscriptions = [subscriber("slow", granted: 200, holding: 12_000, .demand)]
        $0.holds = [.init(reason: .subscribers, milliseconds: 12_000, lastMinute: 930, lastFiveMinutes: 710)]
      }.first
        == "Producers of jobs are blocked repeatedly by subscriber slow (connection 3), which has requested nothing for 12 s (blocked 93 % of the last minute, 71 % of the last five)."
    )
  }

  @Test("Where a subscriber has every record, its cursor waits for the subscriber's commit")
  func uncommitted() {
    func told(next: UInt64) -> [String] {
      sentences {
        var subscriber = subscriber("reader", next: next, granted: TopicSettings.unlimited)
        subscriber.consumer = "c"
        $0.subscriptions = [subscriber]
        $0.consumers = [.init(name: "c", kind: .cursor, nextOffset: 190, lag: 10, age: 5_000, members: 1)]
      }
    }
    #expect(
      told(next: 200).last
        == "Cursor c is 10 records behind, for 5 s: its subscriber was sent them, and hasn't committed them.")
    #expect(
      told(next: 195).last
        == "Cursor c is 10 records behind, for 5 s: its subscriber was sent those before offset 195, and hasn't committed them."
    )
    #expect(told(next: 190).last == "Cursor c is 10 records behind, for 5 s: one subscription uses it.")
  }

  @Test(
    "Groups and durable cursors that are behind are told, the furthest first, and those that aren't are not")
  func consumers() {
    let told = sentences {
      $0.consumers = [
        .init(name: "done", kind: .cursor, nextOffset: 200, lag: 0),
        .init(name: "billing", kind: .cursor, nextOffset: 190, lag: 10, age: 5_000, idle: 8_000),
        .init(
          name: "workers", kind: .group, nextOffset: 0, lag: 1_200, age: 65_000, members: 2, unacknowledged: 7
        ),
        .init(name: "lost", kind: .group, nextOffset: 197, lag: 3, members: 1),
      ]
    }
    #expect(
      told.dropFirst() == [
        "Group workers is 1,200 records behind, for 1 min 5 s: its 2 members have 7 records unacknowledged.",
        "Cursor billing is 10 records behind, for 5 s: no client has used it for 8 s.",
        "Group lost is 3 records behind: one subscription uses it.",
      ])
  }

  @Test("A topic without producers, without subscribers, and one that has ended")
  func empty() {
    #expect(
      sentences { $0.withoutProducers = 65_000 }
        == ["jobs has had no producer for 1 min 5 s, so nothing new comes. It keeps 100 records."])
    #expect(
      sentences {
        $0.publications = [producer(granted: 200, waiting: 5, .subscribers)]
        $0.holds = [.init(reason: .subscribers, milliseconds: 5, lastMinute: 1, lastFiveMinutes: 1)]
      }[0]
        == "1 producer of jobs is blocked: the topic has no subscriber. Start one, or let producers run ahead: sluice topic set jobs --without-subscribers drop"
    )
    #expect(
      sentences { $0.summary.ending = .finished }
        == ["jobs has completed: no record follows. It keeps 100 records."])
    #expect(
      sentences { $0.summary.ending = .failure(code: .producerFailure, message: "no disk") }
        == ["jobs has failed: no disk. It keeps 100 records."])
  }

  @Test("Of many, the first have a sentence each and the others are counted")
  func many() {
    let told = sentences { $0.publications = (0..<8).map { producer("p\($0)") } }
    #expect(told.count == 1 + TopicExplanation.described + 1)
    #expect(told.last == "3 more producers aren't listed.")
  }
}
