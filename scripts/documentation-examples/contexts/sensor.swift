import PortableCombine

enum sensor {
  static var readings: some Publisher<Int, Never> & Sendable { [21, 22, 23].publisher }
}

// BLOCK
for try await reading in client.topic("shared-readings").prefix(2).values { print(reading.string) }
