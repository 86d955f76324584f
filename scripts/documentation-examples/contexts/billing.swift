import PortableCombine
import SluiceClient

let client = try await Client.connect(to: "127.0.0.1:7420")
let orders = client.subject("orders")
let headers: [Message.Header] = [.init("kind", "new")]
try await orders.publish(Message("old in Berlin", key: "eu.de"))
try await orders.publish(Message("new in Boston", key: "us.ma", headers: headers))
try await orders.publish(Message("new in Berlin", key: "eu.de", headers: headers))

func bill(_ record: TopicRecord) { print("bill: \(record.string)") }

// BLOCK
while true { try await Task.sleep(for: .seconds(60)) }
