"""Private releases inside other people's libraries.

`transformers` and `diffusers`: models with a private context. `langchain` and `llama_index`:
retrievers, over `retrieval`, which needs neither. Each needs the extra of its name. Post-processing
only, but for the calls that build.
"""
