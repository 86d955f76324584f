import Glibc
import SluiceClient
import SluiceCommand

extension Run {
  /// Ends the run with what a request brought: prints `text` of it, or says why there is nothing.
  func report<Value>(_ result: Result<Value, ClientError>, _ text: (Value) -> String) {
    switch result {
    case .success(let value): print(text(value))
    case .failure(let error): fail(error)
    }
  }

  /// Ends the run with a text on standard output. That nobody reads it is no failure.
  func print(_ text: String) {
    let code = Descriptor.write(text, to: STDOUT_FILENO)
    guard code == 0 || code == EPIPE else {
      return finish(.failure, unsafe "cannot write to standard output: \(String(cString: strerror(code)))")
    }
    finish(.success)
  }
}
