// Declarations that the blocks in doc comments use. Each block becomes the body of a function after this text.
import PortableCombine
import SluiceBroker
import SluiceClient
import SluiceClientFoundation
import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceTLS
import Testing

struct Order: Codable, Sendable { var id: String, total: Int }

let client = try! await Client.connect(to: "127.0.0.1:7420")
let subject = client.subject("orders.eu")
let orders = ["one", "two"].publisher
let order = Order(id: "order-7", total: 12)
let token = "header.claims.signature"
let seed: UInt64 = 1
let options = TLSServerOptions(certificate: "server.pem", key: "server.key")

/// A sensor, whose readings are numbers and orders.
enum sensor {
  static var readings: some Publisher<Reading, Never> & Sendable { Empty<Reading, Never>() }
}

struct Reading: Codable, Sendable {}

func fetchToken() async throws -> String { token }

func quote(of name: String) async throws -> String { name }

@discardableResult
func work(on record: TopicRecord) -> Bool { record.count > 0 }

func work(on record: TopicRecord) async throws {}
