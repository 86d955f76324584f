import TestSupport

extension BrokerProcess {
  /// Publishes batches of equal records to the topic `t` with a new client, and waits until they are acknowledged.
  func publish(batches: Int, ofRecords count: Int, bytes: Int) throws {
    let client = try client("producer")
    try client.openPublication("t", stream: 1)
    let batch = [[UInt8]](repeating: [UInt8](repeating: 1, count: bytes), count: count)
    for _ in 0..<batches { try client.publish(batch, stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
  }
}
