/// Completion for fish.
enum FishCompletion {
  static func render(_ commands: [CompletionScript.Command], _ topics: CompletionScript.TopicSource?)
    -> String
  {
    let program = String(commands[0].program)
    let function = "__\(CompletionScript.identifier(program))_command"
    let valued = Set(commands.flatMap(\.options).filter { $0.value != nil && $0.bare == nil }.map(\.name))
    let members = Set(commands.flatMap(\.members).map(\.word))
    let header = """
      # Completion of \(program) for fish.

      # The commands in the line so far: 'topic create'.
      function \(function)
          set -l found
          set -l skips no
          for word in (commandline -opc)[2..-1]
              if test $skips = yes
                  set skips no
                  continue
              end
              switch $word
                  case '--*=*'
                  case \(valued.sorted().map { "--\($0)" }.joined(separator: " "))
                      set skips yes
                  case '-*'
                  case \(members.isEmpty ? "''" : members.sorted().joined(separator: " "))
                      set -a found $word
              end
          end
          string join ' ' -- $found
      end

      """
    return header + (topics.map(offering) ?? "") + "complete -c \(program) -f\n"
      + commands.map { lines($0, program, function) }.joined()
  }

  private static func lines(
    _ command: CompletionScript.Command, _ program: String, _ function: String
  ) -> String {
    let condition = "test \"$(\(function))\" = \"\(command.path)\""
    let start = "complete -c \(program) -n \(quoted(condition))"
    var text = ""
    for member in command.members {
      text += "\(start) -a \(member.word) -d \(quoted(member.summary))\n"
    }
    for option in command.options {
      text += "\(start) -l \(option.name)"
      if option.value != nil {
        // One that can stand alone takes a value behind = only.
        if option.bare == nil { text += " -r" }
        switch CompletionScript.Completion(option) {
        case .nothing: text += " -f"
        case .files: text += " -F"
        case .directories: text += " -f -a '(__fish_complete_directories)'"
        case .topics: text += " -f -a '(\(CompletionScript.topicsFunction))'"
        case .words(let words): text += " -f -a \(quoted(words.joined(separator: " ")))"
        }
      }
      text += " -d \(quoted(option.help))\n"
    }
    for operand in command.operands {
      switch CompletionScript.Completion(operand) {
      case .nothing: break
      case .files: text += "\(start) -F\n"
      case .directories: text += "\(start) -a '(__fish_complete_directories)'\n"
      case .topics: text += "\(start) -a '(\(CompletionScript.topicsFunction))'\n"
      case .words(let words): text += "\(start) -a \(quoted(words.joined(separator: " ")))\n"
      }
    }
    return text
  }

  private static func offering(_ topics: CompletionScript.TopicSource) -> String {
    """
    # The names of topics that begin with the word that is being written.
    function \(CompletionScript.topicsFunction)
        set -l given
        set -l option
        set -l prefix (commandline -ct)
        for word in (commandline -opc)[2..-1]
            if test -n "$option"
                set -a given $option $word
                set option
                continue
            end
            switch $word
                case \(patterns(topics.valued))
                    set option $word
                case \(patterns(topics.single))
                    set -a given $word
            end
        end
        \(topics.command) "$prefix" $given </dev/null 2>/dev/null
    end


    """
  }

  private static func patterns(_ words: [String]) -> String {
    words.map { "'\($0)'" }.joined(separator: " ")
  }

  private static func quoted(_ text: String) -> String {
    var result = "'"
    for character in text {
      if character == "'" || character == "\\" { result += "\\" }
      result.append(character)
    }
    return result + "'"
  }
}
