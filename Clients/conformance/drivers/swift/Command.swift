import Foundation
import SluiceClient

/// A line from the kit: a command and its arguments. Payloads, keys and values of headers are base64, which `Data` decodes by itself.
struct Command: Decodable, Sendable {
  struct Record: Decodable, Sendable {
    var payload: Data
    var key: Data?
    var headers: [Header]?

    var message: Message {
      Message(
        [UInt8](payload), key: key.map { [UInt8]($0) },
        headers: (headers ?? []).map { Message.Header($0.name, [UInt8]($0.value)) })
    }
  }

  /// A pair of strings on the line.
  struct Header: Decodable, Sendable {
    var name: String
    var value: Data

    init(from decoder: any Decoder) throws {
      var pair = try decoder.unkeyedContainer()
      name = try pair.decode(String.self)
      value = try pair.decode(Data.self)
    }
  }

  /// A word, or a word and a number.
  struct Start: Decodable, Sendable {
    var word: String
    var number: Int64 = 0

    init(from decoder: any Decoder) throws {
      if var pair = try? decoder.unkeyedContainer() {
        word = try pair.decode(String.self)
        number = try pair.decode(Int64.self)
      } else {
        word = try decoder.singleValueContainer().decode(String.self)
      }
    }
  }

  /// `false`, or a policy.
  struct Reconnect: Decodable, Sendable {
    enum CodingKeys: CodingKey { case initial, maximum, giveUpAfter }

    var isWanted = true
    var initial: Int?
    var maximum: Int?
    var giveUpAfter: Int?

    init() {}

    init(from decoder: any Decoder) throws {
      if let isWanted = try? decoder.singleValueContainer().decode(Bool.self) {
        self.isWanted = isWanted
        return
      }
      let policy = try decoder.container(keyedBy: CodingKeys.self)
      initial = try policy.decodeIfPresent(Int.self, forKey: .initial)
      maximum = try policy.decodeIfPresent(Int.self, forKey: .maximum)
      giveUpAfter = try policy.decodeIfPresent(Int.self, forKey: .giveUpAfter)
    }
  }

  /// A setting's value on the line.
  enum Setting: Decodable, Sendable {
    case word(String)
    case number(UInt64)
    case flag(Bool)

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let flag = try? value.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? value.decode(UInt64.self) {
        self = .number(number)
      } else {
        self = .word(try value.decode(String.self))
      }
    }
  }

  var id: Int
  var `do`: String
  var client: String?
  var on: String?

  // connect
  var servers: [String]?
  var user: String?
  var password: String?
  var tokens: [String]?
  var reconnect: Reconnect?
  var keepalive: Int?
  var connectTimeout: Int?
  var closeTimeout: Int?
  var direct: Bool?

  // subscribe, pattern, group
  var topic: String?
  var from: Start?
  var `where`: [[String]]?
  var prefetch: Int?
  var lag: String?
  var cursor: String?
  var missing: String?
  var settings: [String: Setting]?
  var producers: Bool?
  var events: Bool?
  var group: String?
  var ack: Bool?
  var ordered: Bool?
  var deadline: Int?
  var deliveries: UInt32?
  var deadLetters: String?
  /// Milliseconds.
  var retryBackoff: [Int]?

  // request, settle, commit
  var n: Int?
  var offset: UInt64?
  var attempt: Int?
  var verdict: String?
  var after: Int?

  // produce, publish, fail
  var acknowledge: String?
  var source: Bool?
  var buffer: Int?
  var records: [Record]?
  var wait: Bool?
  var code: UInt32?
  var message: String?

  // call, respond
  var payload: Data?
  var timeout: Int?
  var reply: String?

  // admin
  var call: String?
  var before: UInt64?
  var keepLast: UInt64?
  var name: String?
  var to: Start?
  var connection: UInt64?
}

/// A mistake of the driver or of the kit, not an error of the client.
struct Mistake: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

extension Optional {
  /// The value of an argument that the command requires.
  func given(_ name: String) throws -> Wrapped {
    guard let self else { throw Mistake("the command has no \(name)") }
    return self
  }
}
