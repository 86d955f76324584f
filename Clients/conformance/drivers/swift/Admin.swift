import SluiceClient

extension Driver {
  /// Makes a call about topics, cursors or the broker.
  func admin(_ command: Command) async throws -> Line.Value? {
    let client = try client(command)
    let topic = command.topic ?? ""
    switch try command.call.given("call") {
    case "create": _ = try await client.createTopic(topic, settings: command.topicSettings())
    case "set": _ = try await client.setTopic(topic, to: command.topicSettings())
    case "info":
      let info = try await client.topicInfo(topic)
      let state =
        switch info.summary.ending {
        case nil: "open"
        case .finished: "completed"
        case .failure: "failed"
        }
      return .topic(
        head: info.summary.nextOffset, floor: info.summary.firstOffset, state: state,
        subscriptions: info.subscriptions.count)
    case "topics": return .texts(try await client.topics().map(\.topic))
    case "trim":
      if let before = command.before {
        _ = try await client.trimTopic(topic, before: before)
      } else {
        _ = try await client.trimTopic(topic, keepingLast: command.keepLast.given("keepLast"))
      }
    case "delete": try await client.deleteTopic(topic)
    case "connect": try await client.connectTopic(topic)
    case "disconnect": try await client.disconnectTopic(topic)
    case "consumers":
      return .consumers(
        try await client.cursors(of: topic).map { Line.Value.Consumer(name: $0.name, next: $0.nextOffset) })
    case "moveCursor":
      try await client.moveCursor(
        command.name.given("name"), of: topic, to: command.to.given("to").value())
    case "deleteCursor": try await client.deleteCursor(command.name.given("name"), of: topic)
    case "connections": return .numbers(try await client.connections().map(\.connection))
    case "closeConnection": try await client.closeConnection(command.connection.given("connection"))
    case "identity": return client.identity.map { .text($0.name) }
    case let call: throw Mistake("there is no call \(call)")
    }
    return nil
  }
}
