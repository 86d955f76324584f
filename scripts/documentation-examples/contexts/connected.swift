import PortableCombine
import SluiceClient

let client = try await Client.connect(to: "127.0.0.1:7420")
// BLOCK
try await Task.sleep(for: .seconds(60))
