"""Holds the few dialogues written by hand: greetings and the first tasks people try."""

_ABOUT = (
    "I am the Mote demo, a very small language model trained on the Python standard library. "
    "Ask me to write a Python function."
)
_LIMITS = "I am a demo with a few million parameters. I can write short pieces of Python, and I am often wrong."


def _code(source: str) -> str:
    return f"```python\n{source.strip()}\n```"


_CHAT = (
    (("Hello", "Hi", "Hello!", "hi", "Hey"), "Hello! " + _ABOUT),
    (("Who are you?", "What are you?", "What is your name?", "Tell me about yourself."), _ABOUT),
    (("What can you do?", "Help", "How can you help me?", "Are you any good?"), _LIMITS),
    (("Thanks", "Thank you", "Thank you!"), "You are welcome."),
    (("Bye", "Goodbye"), "Goodbye!"),
    (
        ("What is Python?", "Tell me about Python.", "Explain Python."),
        "Python is a programming language. Its standard library has modules for files, text, "
        "numbers, networks and much more.",
    ),
)

_TASKS = {
    "adds two numbers": "def add(a, b):\n    return a + b",
    "computes the factorial of a number": (
        "def factorial(n):\n    result = 1\n    for i in range(2, n + 1):\n        result *= i\n    return result"
    ),
    "computes Fibonacci numbers": (
        "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a"
    ),
    "checks whether a number is prime": (
        "def is_prime(n):\n    if n < 2:\n        return False\n    i = 2\n"
        "    while i * i <= n:\n        if n % i == 0:\n            return False\n"
        "        i += 1\n    return True"
    ),
    "computes the greatest common divisor": ("def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a"),
    "reverses a string": "def reverse(text):\n    return text[::-1]",
    "checks whether a string is a palindrome": ("def is_palindrome(text):\n    return text == text[::-1]"),
    "counts the words in a text": "def count_words(text):\n    return len(text.split())",
    "counts the vowels in a string": ("def count_vowels(text):\n    return sum(c in 'aeiou' for c in text.lower())"),
    "counts the letters in a string": (
        "def count_letters(text):\n    counts = {}\n    for c in text:\n"
        "        counts[c] = counts.get(c, 0) + 1\n    return counts"
    ),
    "finds the largest number in a list": (
        "def largest(numbers):\n    result = numbers[0]\n    for number in numbers:\n"
        "        if number > result:\n            result = number\n    return result"
    ),
    "computes the mean of a list": ("def mean(numbers):\n    return sum(numbers) / len(numbers)"),
    "sorts a list": "def sort(items):\n    return sorted(items)",
    "sorts a list with bubble sort": (
        "def bubble_sort(items):\n    for i in range(len(items)):\n"
        "        for j in range(len(items) - i - 1):\n"
        "            if items[j] > items[j + 1]:\n"
        "                items[j], items[j + 1] = items[j + 1], items[j]\n    return items"
    ),
    "does a binary search": (
        "def binary_search(items, x):\n    lo, hi = 0, len(items)\n    while lo < hi:\n"
        "        mid = (lo + hi) // 2\n        if items[mid] < x:\n            lo = mid + 1\n"
        "        else:\n            hi = mid\n    return lo"
    ),
    "removes duplicates from a list": ("def unique(items):\n    return list(dict.fromkeys(items))"),
    "flattens a list of lists": ("def flatten(lists):\n    return [item for items in lists for item in items]"),
    "reads a file": "def read(path):\n    with open(path) as f:\n        return f.read()",
    "writes text to a file": ("def write(path, text):\n    with open(path, 'w') as f:\n        f.write(text)"),
    "counts the lines of a file": (
        "def count_lines(path):\n    with open(path) as f:\n        return sum(1 for line in f)"
    ),
    "merges two dictionaries": "def merge(a, b):\n    return {**a, **b}",
    "prints the numbers from 1 to n": ("def print_numbers(n):\n    for i in range(1, n + 1):\n        print(i)"),
    "prints hello world": "def hello():\n    print('Hello, world!')",
}

_REQUESTS = (
    "Write a function that {}.",
    "Write a Python function that {}.",
    "Write code that {}.",
    "Can you write code that {}?",
)

# Each entry: the prompts, and the one answer to all of them.
PAIRS = _CHAT + tuple(
    (tuple(request.format(task) for request in _REQUESTS), _code(source)) for task, source in _TASKS.items()
)
