import Dispatch
import Glibc
import ReactiveCore
import SluiceClient

/// Records published by a program through a `TopicSubject`.
enum PublishBench {
  static func cases(_ settings: ClientBenchSettings) -> [MicroCase] {
    let size = Format.bytes(Double(settings.size))
    let table = "client, publishing records of \(size)"
    let message = Message([UInt8](repeating: 0x61, count: settings.size))
    return [
      MicroCase(table, "enqueue(copying:)") { _ in
        try measure(settings, settings.records) { subject, records in
          try message.payload.withUnsafeBytes { payload in
            for _ in 0..<records {
              // The buffer is full: lets other threads work.
              while try !subject.enqueue(copying: payload) { usleep(100) }
            }
          }
        }
      },
      MicroCase(table, "a publisher, subscribed by the subject") { _ in
        try measure(settings, settings.records) { subject, records in
          let done = DispatchSemaphore(value: 0)
          let cancellable = (0..<records).publisher
            .map { _ in message }
            .setFailureType(to: ClientError.self)
            .subscribe(Unending(subject) { done.signal() })
          done.wait()
          cancellable.cancel()
        }
      },
      MicroCase(table, "await enqueue(_:)") { _ in
        try measure(settings, settings.records / 10) { subject, records in
          try Blocking.run { for _ in 0..<records { try await subject.enqueue(message) } }
        }
      },
      MicroCase(table, "await publish(_:), one by one") { _ in
        try measure(settings, min(settings.records, 10_000)) { subject, records in
          try Blocking.run { for _ in 0..<records { try await subject.publish(message) } }
        }
      },
    ]
  }

  /// Publishes, and waits until the broker has acknowledged all records.
  static func measure(
    _ settings: ClientBenchSettings, _ records: Int, _ publish: (TopicSubject, Int) throws -> Void
  ) throws -> [Reading] {
    let driver = SluiceDriver(target: settings.target(topic: "bench-publish", keepsAll: false))
    try driver.prepare()
    defer { try? driver.cleanUp() }
    return try SubscribeBench.withClient(settings) { client in
      let subject = client.subject("bench-publish")
      _ = try Blocking.run { try await subject.publish("ready") }
      let start = Moment(server: settings.server)
      try publish(subject, records)
      try Blocking.run { try await subject.flush() }
      let spent = start.elapsed()
      guard subject.acknowledgedCount == records + 1 else {
        throw BenchError("\(subject.acknowledgedCount) of \(records + 1) records were acknowledged")
      }
      return Reading.client(records, cpu: spent.process, wall: spent.wall)
        + [Reading(.caller, spent.thread / Double(records))] + Reading.broker(records, cpu: spent.server)
    }
  }
}

/// A subject that passes everything except the completion to another one, so that the topic doesn't end after one run.
private final class Unending: Subject {
  typealias Output = Message
  typealias Failure = ClientError

  private let subject: TopicSubject
  private let ended: () -> Void

  init(_ subject: TopicSubject, ended: @escaping () -> Void) {
    self.subject = subject
    self.ended = ended
  }

  func send(_ value: Message) {
    subject.send(value)
  }

  func send(completion: Subscribers.Completion<ClientError>) {
    ended()
  }

  func send(subscription: any Subscription) {
    subject.send(subscription: subscription)
  }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    subject.receive(subscriber: subscriber)
  }
}
