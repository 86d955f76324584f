import SluiceClient
import SluiceCommand

struct ConnectionCommand: CommandGroup {
  static var members: [any Command.Type] {
    [ConnectionListCommand.self, ConnectionShowCommand.self, ConnectionCloseCommand.self]
  }

  static let page = CommandPage(
    "sluice connection", summary: "list, show and close the broker's connections",
    operands: [Operand("COMMAND")],
    details: "Needs the permission to administer every topic: admin on >.",
    examples: [
      "Which clients are connected?": "sluice connection list",
      "Close a connection.": "sluice connection close 17",
    ], commands: members.map { $0.page })

  static func number(_ text: String) throws(UsageError) -> UInt64 {
    guard let number = UInt64(text), number > 0 else {
      throw UsageError("'\(text)' isn't a connection's number; sluice connection list prints them")
    }
    return number
  }
}

struct ConnectionListCommand: Command {
  /// The sort key of connections: names and connection numbers ascend, other numbers descend.
  enum Sort: String, CaseIterable {
    case connection, client, age, subscriptions, publications, buffered, received, sent

    func sorted(_ connections: [ConnectionInfo]) -> [ConnectionInfo] {
      func largest<Number: Comparable>(_ number: (ConnectionInfo) -> Number) -> [ConnectionInfo] {
        connections.sorted { (number($0), $1.connection) > (number($1), $0.connection) }
      }
      switch self {
      case .connection: return connections.sorted { $0.connection < $1.connection }
      case .client: return connections.sorted { ($0.client, $0.connection) < ($1.client, $1.connection) }
      case .age: return largest(\.age)
      case .subscriptions: return largest(\.subscriptions)
      case .publications: return largest(\.publications)
      case .buffered: return largest(\.buffered)
      case .received: return largest(\.received)
      case .sent: return largest(\.sent)
      }
    }
  }

  let asJSON: Bool
  let prefix: String
  let sort: Sort
  /// Nil for all.
  let count: Int?

  static let page = CommandPage(
    "sluice connection list", summary: "list the broker's connections",
    options: [
      CommandOption("client", value: "TEXT", help: "Only clients whose names begin with TEXT."),
      CommandOption(
        "sort", value: "COLUMN",
        help:
          "Sort by connection, client, age, subscriptions, publications, buffered, received or sent; ages and amounts with the largest first.",
        standard: "connection", choices: Sort.allCases.map(\.rawValue)),
      CommandOption("count", letter: "n", value: "N", help: "Print only the first N."), TopicCommand.json,
    ],
    details: """
      BUFFERED is the number of bytes that wait in the broker, in both directions. RECEIVED and SENT count the bytes of frames since the connection was accepted. \
      For clients of HTTP, WebSocket and MQTT they count the frames that the gateway exchanges with the broker.
      """,
    examples: [
      "All connections.": "sluice connection list",
      "Those with the most buffered bytes.": "sluice connection list --sort buffered -n 10",
      "Those that were sent the most bytes.": "sluice connection list --sort sent -n 10",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
    prefix = arguments.text("client") ?? ""
    sort = try arguments.value("sort", Values.choice(Sort.self)) ?? .connection
    count = try arguments.value("count", Values.count(in: 1...UInt64.max)).map { Int(clamping: $0) }
  }

  func start(_ run: Run) {
    run.connect { client in
      client.connections { result in
        run.report(result) { connections in
          let found = connections.filter { $0.client.utf8.starts(with: prefix.utf8) }
          let shown = sort.sorted(found).prefix(count ?? found.count)
          return asJSON
            ? shown.map { ConnectionTable.object($0).line }.joined() : ConnectionTable.list(Array(shown))
        }
      }
    }
  }
}

struct ConnectionShowCommand: Command {
  let number: UInt64
  let asJSON: Bool

  static let page = CommandPage(
    "sluice connection show", summary: "show a connection", operands: [Operand("NUMBER")],
    options: [TopicCommand.json],
    examples: ["Which client uses this connection?": "sluice connection show 17"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    number = try ConnectionCommand.number(arguments.operands[0])
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.connection(number) { result in
        run.report(result) { asJSON ? ConnectionTable.object($0).line : ConnectionTable.show($0) }
      }
    }
  }
}

struct ConnectionCloseCommand: Command {
  let numbers: [UInt64]
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice connection close", summary: "close connections of clients",
    operands: [Operand("NUMBER"), Operand("NUMBER", .repeated)],
    options: [TopicCommand.quiet],
    details: """
      Each client gets the error that an operator has closed its connection. The client library connects again: to keep a client out, revoke its permissions first.
      """, examples: ["Close connection 17.": "sluice connection close 17"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    var numbers: [UInt64] = []
    for text in arguments.operands { numbers.append(try ConnectionCommand.number(text)) }
    self.numbers = numbers
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    run.connect { client in close(numbers[...], client, run) }
  }

  private func close(_ left: ArraySlice<UInt64>, _ client: Client, _ run: Run) {
    guard let number = left.first else {
      if !isQuiet {
        run.note(
          numbers.count == 1 ? "closed connection \(numbers[0])" : "closed \(numbers.count) connections")
      }
      return run.finish(.success)
    }
    client.closeConnection(number) { result in
      switch result {
      case .success: close(left.dropFirst(), client, run)
      case .failure(let error): run.fail(error)
      }
    }
  }
}

/// Connections, for people and as objects of JSON.
enum ConnectionTable {
  static func list(_ connections: [ConnectionInfo]) -> String {
    guard !connections.isEmpty else { return "" }
    return TextTable.render(
      [
        [
          "CLIENT", "IDENTITY", "PEER", "CONNECTION", "AGE", "SUBSCRIPTIONS", "PUBLICATIONS", "BUFFERED",
          "RECEIVED", "SENT",
        ]
      ]
        + connections.map { connection in
          [
            connection.client, connection.identity, connection.peer, "\(connection.connection)",
            age(connection), "\(connection.subscriptions)", "\(connection.publications)",
            connection.buffered == 0 ? "" : ByteSize.rounded(connection.buffered),
            // 0 also stands for a broker that doesn't report it.
            connection.received == 0 ? "" : ByteSize.rounded(connection.received),
            connection.sent == 0 ? "" : ByteSize.rounded(connection.sent),
          ]
        }, leftColumns: 3)
  }

  static func show(_ connection: ConnectionInfo) -> String {
    TextTable.render(
      [
        ["connection", "\(connection.connection)"], ["client", connection.client],
        ["identity", connection.identity.isEmpty ? "none" : connection.identity], ["peer", connection.peer],
        ["security", connection.security.isEmpty ? "no TLS" : connection.security],
        ["age", age(connection)], ["subscriptions", "\(connection.subscriptions)"],
        ["publications", "\(connection.publications)"], ["buffered", ByteSize.rounded(connection.buffered)],
        ["received", ByteSize.rounded(connection.received)], ["sent", ByteSize.rounded(connection.sent)],
      ], leftColumns: 2)
  }

  static func object(_ connection: ConnectionInfo) -> JSON {
    [
      "connection": .number(connection.connection), "client": .text(connection.client),
      "identity": .text(connection.identity), "peer": .text(connection.peer),
      "security": .text(connection.security), "age_ms": .number(connection.age),
      "subscriptions": .number(connection.subscriptions), "publications": .number(connection.publications),
      "buffered_bytes": .number(connection.buffered), "received_bytes": .number(connection.received),
      "sent_bytes": .number(connection.sent),
    ]
  }

  private static func age(_ connection: ConnectionInfo) -> String {
    // The age of this program's own connection may be 0.
    TimeSpan.rounded(.milliseconds(Int64(clamping: max(connection.age, 1))))
  }
}
