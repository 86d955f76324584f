import Foundation
import PortableCombine
import SluiceClient
import Synchronization

/// Drives the client for Swift: commands as JSON lines on standard input, answers and events on standard output.
@main
enum Program {
  /// A broker also revokes the identity of a user whose password hash has changed. So the client retries as often as `ReconnectPolicy.refusals`
  /// allows, and fails with the broker's refusal.
  private static let lacks = ["credentials/revoked"]

  static func main() {
    let driver = Driver()
    Line(event: "ready", client: "swift", lacks: lacks).write()
    while let line = readLine() {
      do {
        let command = try JSONDecoder().decode(Command.self, from: Data(line.utf8))
        // Starts here, so that commands begin in the order of their lines. They end in any order.
        Task.immediate { await driver.answer(command) }
      } catch {
        Line(event: "fault", message: "a command can't be decoded: \(error)").write()
      }
    }
  }
}

/// All clients, producers and subscriptions that the kit has opened.
final class Driver: Sendable {
  /// A producer, and the parts that make it a source.
  struct Producer: Sendable {
    var client: String
    var subject: TopicSubject
    var source: SourcePublication?
    var connected: CurrentValueSubject<Bool, Never>
  }

  enum Opened: Sendable {
    case reader(any Reading)
    case producer(Producer)
    case responder(AnyCancellable)
  }

  let clients = Mutex<[String: Client]>([:])
  let opened = Mutex<[String: Opened]>([:])

  func answer(_ command: Command) async {
    var line = Line(id: command.id)
    do {
      try await run(command, &line)
    } catch {
      line.error = Line.Failure(error)
    }
    line.write()
  }

  private func run(_ command: Command, _ line: inout Line) async throws {
    switch command.do {
    case "connect": try await connect(command)
    case "close": await close(command)
    case "reset": reset()
    case "subscribe": try subscribe(command)
    case "pattern":
      var plan = try command.plan()
      plan.isPattern = true
      try open(command, client(command).topic(plan).events, keeps: false)
    case "group":
      let group = try command.group.given("group")
      let topic = try client(command).group(group, options: command.groupOptions(), of: command.plan())
      try open(command, topic.events, keeps: true)
    case "request": try reader(command).request(command.n.given("n"))
    case "settle":
      try reader(command).settle(
        command.offset.given("offset"), command.attempt.given("attempt"), command.verdict.given("verdict"),
        after: command.after.map { .milliseconds($0) })
    case "commit": try reader(command).commit(command.offset.given("offset"))
    case "cancel": try cancel(command)
    case "produce": try produce(command)
    case "publish": line.offsets = try await publish(command)
    case "flush": try await producer(command).subject.flush()
    case "complete": try await producer(command).subject.complete()
    case "fail":
      let failure = ClientError.topicFailure(command.message ?? "", code: try command.code.given("code"))
      try await producer(command).subject.complete(.failure(failure))
    case "connected":
      for await isConnected in try producer(command).connected.values where isConnected { break }
    case "call": line.payload = try await call(command)
    case "respond": try respond(command)
    case "admin": line.value = try await admin(command)
    case let name: throw Mistake("there is no command \(name)")
    }
  }

  func client(_ command: Command) throws -> Client {
    let name = try command.client.given("client")
    return try clients.withLock { $0[name] }.given("client \(name)")
  }

  private func reader(_ command: Command) throws -> any Reading {
    guard case .reader(let reader) = try thing(command) else { throw Mistake("it isn't a subscription") }
    return reader
  }

  private func producer(_ command: Command) throws -> Producer {
    guard case .producer(let producer) = try thing(command) else { throw Mistake("it isn't a producer") }
    return producer
  }

  private func thing(_ command: Command) throws -> Opened {
    let name = try command.on.given("on")
    return try opened.withLock { $0[name] }.given("\(name) that is open")
  }

  private func keep(_ command: Command, _ thing: Opened) throws {
    let name = try command.on.given("on")
    opened.withLock { $0[name] = thing }
  }

  // MARK: Clients

  private func connect(_ command: Command) async throws {
    let client = try await Client.connect(
      to: command.servers.given("servers"), options: command.clientOptions())
    let name = try command.client.given("client")
    clients.withLock { $0[name] = client }
  }

  /// Flushes the client's producers within the time to close, and closes it.
  private func close(_ command: Command) async {
    guard let name = command.client, let client = clients.withLock({ $0.removeValue(forKey: name) }) else {
      return
    }
    let subjects = opened.withLock { opened in
      opened.values.compactMap { thing -> TopicSubject? in
        if case .producer(let producer) = thing, producer.client == name { producer.subject } else { nil }
      }
    }
    await withTaskGroup { group in
      group.addTask {
        for subject in subjects { try? await subject.flush() }
      }
      group.addTask { try? await Task.sleep(for: .milliseconds(command.closeTimeout ?? 5_000)) }
      await group.next()
      group.cancelAll()
    }
    client.close()
  }

  private func reset() {
    let things = opened.withLock { exchange(&$0, with: [:]) }
    for case .reader(let reader) in things.values { reader.cancel() }
    for client in clients.withLock({ exchange(&$0, with: [:]) }).values { client.close() }
  }

  // MARK: Subscriptions

  private func subscribe(_ command: Command) throws {
    let topic = try client(command).topic(command.plan())
    let keeps = command.cursor != nil
    if command.events == false {
      try open(command, topic.map(TopicEvent.record), keeps: keeps)
    } else {
      try open(command, topic.events(including: command.producers == true ? .producers : []), keeps: keeps)
    }
  }

  private func open<Value: Delivered>(
    _ command: Command, _ events: some Publisher<TopicEvent<Value>, ClientError>, keeps: Bool
  ) throws {
    let reader = Reader<Value>(try command.on.given("on"), keeps: keeps)
    try keep(command, .reader(reader))
    events.subscribe(reader)
  }

  private func cancel(_ command: Command) throws {
    let name = try command.on.given("on")
    switch opened.withLock({ $0.removeValue(forKey: name) }) {
    case .reader(let reader): reader.cancel()
    case .responder(let responder): responder.cancel()
    // Releasing the producer ends it after the records that it has accepted.
    case .producer, nil: break
    }
  }

  // MARK: Publishing

  private func produce(_ command: Command) throws {
    let buffer = command.buffer.map { TopicSubject.Buffer(records: $0) } ?? TopicSubject.Buffer()
    let settings = command.settings == nil ? nil : try command.topicSettings()
    let subject = try client(command).subject(
      command.topic.given("topic"), settings: settings, acknowledgement: command.acknowledgement(),
      buffer: buffer)
    let connected = CurrentValueSubject<Bool, Never>(false)
    var source: SourcePublication?
    if command.source == true {
      // Only its subscriptions matter: the kit's records are published to the subject.
      source = Empty<Message, Never>(completeImmediately: false)
        .handleEvents(
          receiveSubscription: { _ in connected.send(true) }, receiveCancel: { connected.send(false) }
        )
        .publish(to: subject, when: .connected)
    }
    let name = try command.client.given("client")
    try keep(
      command, .producer(Producer(client: name, subject: subject, source: source, connected: connected)))
  }

  private func publish(_ command: Command) async throws -> [UInt64?]? {
    let subject = try producer(command).subject
    let messages = try command.records.given("records").map(\.message)
    guard command.wait == true else {
      for message in messages { try await subject.enqueue(message) }
      return nil
    }
    let receipts = messages.map { message in
      Future<TopicSubject.Receipt, ClientError> { subject.publish(message, completion: $0) }
    }
    var offsets: [UInt64?] = []
    for receipt in receipts { offsets.append(try await receipt.value.offset) }
    return offsets
  }

  // MARK: Requests

  private func call(_ command: Command) async throws -> Data {
    let payload = try command.payload.given("payload")
    let reply = try await client(command).request(
      command.topic.given("topic"), Message([UInt8](payload)),
      timeout: .milliseconds(command.timeout ?? 5_000))
    return Data(reply.payload)
  }

  private func respond(_ command: Command) throws {
    let kind = command.reply
    let responder = try client(command).respond(to: command.topic.given("topic")) { request in
      if kind == "error" { throw TopicFailure(message: "out of stock") }
      if kind == "never" { try await Task.sleep(for: .seconds(60)) }
      return Message(request.payload)
    }
    try keep(command, .responder(responder))
  }
}
