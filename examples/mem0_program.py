"""A typical mem0 program: only the import differs, and a stub replaces OpenAI."""

from ricordo.integrations.mem0 import Memory

memory = Memory()


def answer_of(messages: list[dict[str, str]]) -> str:
    """Stand in for a language model."""
    return f"Understood: {messages[-1]['content']}"


def chat_with_memories(message: str, user_id: str = "default_user") -> str:
    relevant_memories = memory.search(query=message, filters={"user_id": user_id}, top_k=3)
    memories_str = "\n".join(f"- {entry['memory']}" for entry in relevant_memories["results"])
    system_prompt = f"You are a helpful AI. Answer with these memories of the user:\n{memories_str}"
    messages = [{"role": "system", "content": system_prompt}, {"role": "user", "content": message}]
    assistant_response = answer_of(messages)
    messages.append({"role": "assistant", "content": assistant_response})
    memory.add(messages, user_id=user_id)
    return assistant_response


if __name__ == "__main__":
    for said in ("I live in Rome.", "I don't like thrillers.", "Now I live in Milan."):
        print(chat_with_memories(said, user_id="alice"))
    found = memory.search("which films should you not recommend?", filters={"user_id": "alice"}, top_k=1)
    print(found["results"][0]["memory"])
    for entry in memory.get_all(filters={"user_id": "alice"})["results"]:
        print("-", entry["memory"])
