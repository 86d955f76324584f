import Glibc
import TestSupport

func write(_ text: String, to path: String) throws {
  guard let file = fopen(path, "w") else { throw TestFailure("\(path) can't be written") }
  fputs(text, file)
  fclose(file)
}

func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 }
